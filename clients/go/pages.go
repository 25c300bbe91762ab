package durablememory

import (
	"context"
	"iter"

	pb "durablememory.dev/go/durablememoryv1"
)

// Page is one page of a listing.
type Page[T any] struct {
	Items []T
	// NextPageToken is empty on the last page.
	NextPageToken string
	// ChangeToken is what the listing answers for; the zero value where the listing does not say.
	ChangeToken ChangeToken
}

// Pages is a listing. Nothing is read before the first item is asked for, and no page before it is needed.
//
//	for node, err := range memory.ListNodes(nil).All(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
type Pages[T any] struct {
	fetch func(ctx context.Context, token string) (Page[T], error)
}

// All is all items. An error ends it.
func (p *Pages[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for page, err := range p.Pages(ctx) {
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Pages is all pages, in order. An error ends it.
func (p *Pages[T]) Pages(ctx context.Context) iter.Seq2[Page[T], error] {
	return func(yield func(Page[T], error) bool) {
		token := ""
		for {
			page, err := p.Page(ctx, token)
			if !yield(page, err) || err != nil || page.NextPageToken == "" {
				return
			}
			token = page.NextPageToken
		}
	}
}

// Page is one page: the first for an empty token, or the one after the page that had this NextPageToken.
func (p *Pages[T]) Page(ctx context.Context, token string) (Page[T], error) {
	page, err := p.fetch(ctx, token)
	if err != nil {
		return Page[T]{}, err
	}
	return page, nil
}

// Collect is all items at once.
func (p *Pages[T]) Collect(ctx context.Context) ([]T, error) { return collected(p.All(ctx)) }

func collected[T any](sequence iter.Seq2[T, error]) ([]T, error) {
	var items []T
	for item, err := range sequence {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// page converts what a listing answered. response says what it answers for, if its listing does.
func page[From, To any](messages []From, convert func(From) To, response any, next string) Page[To] {
	made := Page[To]{Items: each(messages, convert), NextPageToken: next}
	if pointed, ok := response.(interface{ GetChangeToken() *pb.ChangeToken }); ok {
		made.ChangeToken = changeTokenOf(pointed.GetChangeToken())
	}
	return made
}
