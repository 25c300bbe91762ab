package durablememory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "durablememory.dev/go/durablememoryv1"
)

const (
	chunkRecords = 256
	chunkBytes   = 1 << 20
)

// ExportNamespace writes everything that the namespace has, as text: one JSON record to a line, header first, footer
// last. Only an export that ends without an error is one.
//
// Reasons: HISTORY_COMPACTED. One without its footer is [ErrIncomplete].
func (m *Memory) ExportNamespace(ctx context.Context, to io.Writer) error {
	complete := false
	for message, err := range m.stream(ctx, &pb.ExportNamespaceRequest{}, 1) {
		if err != nil {
			return err
		}
		for _, record := range message.(*pb.ExportNamespaceResponse).GetRecords() {
			complete = record.GetFooter() != nil
			if err := writeRecord(to, record); err != nil {
				return err
			}
		}
	}
	if !complete {
		return incomplete("the export ended before its footer")
	}
	return nil
}

func writeRecord(to io.Writer, record *pb.ExportRecord) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(record)
	if err != nil {
		return err
	}
	// protojson spaces its output at random; what is exported twice is to be the same.
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err = to.Write(line.Bytes())
	return err
}

// Imported is what was imported, and where the namespace stands in its new history.
type Imported struct {
	ChangeToken   ChangeToken
	Nodes         int64
	NodeRevisions int64
	ChangeSets    int64
	Requests      int64
	Sessions      int64
	Runs          int64
	AccessEvents  int64
}

// ImportOptions is what may be left out of ImportNamespace.
type ImportOptions struct {
	RequestID string
}

// ImportNamespace takes an export into this namespace, which must be empty and the exported one: all or nothing,
// verified. It is sent once, because it can be read only once: after a lost connection, call again with the same export
// and the error's RequestID.
//
// Reasons: REVISION_CONFLICT (the namespace is not empty), INVALID_FIELD (the export is of another one),
// DATA_CORRUPTED, NAMESPACE_TOO_LARGE.
func (m *Memory) ImportNamespace(ctx context.Context, from io.Reader, options *ImportOptions) (Imported, error) {
	records := &recordReader{lines: bufio.NewReader(from)}
	first := &pb.ImportNamespaceRequest{RequestId: orDefault(options).RequestID}
	var response pb.ImportNamespaceResponse
	if err := m.calls.upload(ctx, m.namespace, first, records.chunk, &response); err != nil {
		return Imported{}, err
	}
	counts := response.GetCounts()
	return Imported{
		ChangeToken:   changeTokenOf(response.GetChangeToken()),
		Nodes:         counts.GetNodes(),
		NodeRevisions: counts.GetNodeRevisions(),
		ChangeSets:    counts.GetChangeSets(),
		Requests:      counts.GetRequests(),
		Sessions:      counts.GetSessions(),
		Runs:          counts.GetRuns(),
		AccessEvents:  counts.GetAccessEvents(),
	}, nil
}

// recordReader packs the records of an export into requests of a bounded number and size.
type recordReader struct {
	lines *bufio.Reader
	line  int
	next  *pb.ExportRecord // read, and not sent yet
}

// chunk is the next request, nil at the end.
func (r *recordReader) chunk() (proto.Message, error) {
	request := &pb.ImportNamespaceRequest{}
	size := 0
	for {
		if r.next == nil {
			record, err := r.record()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			r.next = record
		}
		size += proto.Size(r.next)
		if len(request.Records) == chunkRecords || (len(request.Records) > 0 && size > chunkBytes) {
			break
		}
		request.Records = append(request.Records, r.next)
		r.next = nil
	}
	if len(request.Records) == 0 {
		return nil, nil
	}
	return request, nil
}

// record is the next record; io.EOF at the end. Its errors never quote the line.
func (r *recordReader) record() (*pb.ExportRecord, error) {
	line, err := r.lines.ReadBytes('\n')
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	r.line++
	record := &pb.ExportRecord{}
	if protojson.Unmarshal(line, record) != nil || record.GetRecord() == nil {
		return nil, fmt.Errorf("durablememory: line %d of the export is not a record", r.line)
	}
	return record, nil
}
