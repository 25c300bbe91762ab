package durablememory_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	durablememory "durablememory.dev/go"
	pb "durablememory.dev/go/durablememoryv1"
	"durablememory.dev/go/internal/scripted"
)

// everyRPC calls each RPC by its method. What it answers is not looked at: a service may answer with nothing at all.
var everyRPC = map[string]func(ctx context.Context, client *durablememory.Client, run *durablememory.Run){
	"CandidateService.ActivateCandidates": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Activate(ctx, durablememory.Citation{}, durablememory.ManualDecision(""), nil)
	},
	"CandidateService.ListCandidates": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ListCandidates(nil).Collect(ctx)
	},
	"CandidateService.ProposeCandidates": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Propose(ctx, durablememory.Draft{}, nil)
		_, _ = client.ProposeMany(ctx, []durablememory.Draft{{}}, nil)
	},
	"CandidateService.RejectCandidates": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Reject(ctx, durablememory.Citation{}, durablememory.RuleDecision("a", "1", ""), nil)
	},
	"MemoryService.GetMemory": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Get(ctx, durablememory.Citation{})
	},
	"MemoryService.PutMemory": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Put(ctx, "a", durablememory.Draft{}, nil)
	},
	"MemoryService.ReactivateMemory": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Reactivate(ctx, durablememory.Citation{}, nil)
	},
	"MemoryService.Remember": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Remember(ctx, durablememory.Draft{}, nil)
	},
	"MemoryService.RetireMemory": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Retire(ctx, durablememory.Citation{}, nil)
	},
	"MemoryService.ReviseMemory": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Revise(ctx, durablememory.Citation{}, durablememory.Revision{}, nil)
	},
	"MemoryService.SupersedeMemory": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Supersede(ctx, durablememory.Citation{}, durablememory.Draft{}, nil)
	},
	"RecallService.ActiveRecall": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.Recall(ctx, "a", nil)
		_, _ = run.RecallAndAdmit(ctx, "a", nil)
		_, _ = run.Session().Recall(ctx, "a", nil)
	},
	"RecallService.AdmitMemories": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.Admit(ctx, []durablememory.Hit{{}}, nil)
	},
	"RecallService.ExplainRecall": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.Session().Explain(ctx, "a", "a", nil)
	},
	"RecallService.GetUsageSummary": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Usage(nil).Collect(ctx)
	},
	"RecallService.PreviewRecall": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Preview(ctx, "a", nil)
	},
	"RecallService.RecordUse": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.RecordUse(ctx, []durablememory.Hit{{}}, nil)
	},
	"RepositoryService.ApplyChangeSet": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ApplyChangeSet(ctx, []durablememory.Operation{
			durablememory.Create{}, durablememory.Activate{}, durablememory.Corroborate{}, durablememory.Revise{},
			durablememory.AddRelation{}, durablememory.RemoveRelation{}, durablememory.SetStatus{},
		}, nil)
	},
	"RepositoryService.BatchGetNodes": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetNodes(ctx, []string{"a"}, nil)
	},
	"RepositoryService.GetChangeSet": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetChangeSet(ctx, 1)
		_, _ = client.GetChangeSetOf(ctx, "Remember", "a")
	},
	"RepositoryService.GetChangeToken": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetChangeToken(ctx)
	},
	"RepositoryService.GetNode": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetNode(ctx, "a", nil)
	},
	"RepositoryService.GetRevision": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetRevision(ctx, durablememory.NodeRevision{})
	},
	"RepositoryService.ListChangeSets": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ListChangeSets(nil).Collect(ctx)
	},
	"RepositoryService.ListNodes": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ListNodes(nil).Collect(ctx)
	},
	"RepositoryService.ListRevisions": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ListRevisions("a", nil).Collect(ctx)
	},
	"RepositoryService.Snapshot": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.Snapshot(nil).Collect(ctx)
	},
	"RepositoryService.WatchNamespace": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		for range client.Watch(nil).All(ctx) {
			break
		}
	},
	"SemanticService.ClearPartition": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ClearPartition(ctx, nil)
	},
	"SemanticService.GetIndexStatus": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetIndexStatus(ctx)
	},
	"SemanticService.GetMaintenanceHealth": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetMaintenanceHealth(ctx)
	},
	"SemanticService.ListReceipts": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ListReceipts(nil).Collect(ctx)
	},
	"SemanticService.RefreshSemanticRecall": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.RefreshSemanticRecall(ctx, "a", nil)
	},
	"SemanticService.SetSchedule": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.SetSchedule(ctx, nil)
	},
	"SessionService.BeginRun": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.Session().BeginRun(ctx, "a", nil)
	},
	"SessionService.CloseSession": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.CloseSession(ctx, "a", nil)
	},
	"SessionService.EndRun": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.End(ctx)
	},
	"SessionService.GetServerInfo": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ServerInfo(ctx)
	},
	"SessionService.GetSession": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.GetSession(ctx, "a")
	},
	"SessionService.ListSessions": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ListSessions(nil).Collect(ctx)
	},
	"SessionService.OpenSession": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.OpenSession(ctx, "a", nil)
	},
	"SessionService.RebindSession": func(ctx context.Context, _ *durablememory.Client, run *durablememory.Run) {
		_, _ = run.Session().Rebind(ctx, durablememory.Policy{}, nil)
	},
	"SessionService.ResumeSession": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ResumeSession(ctx, "a", "digest", nil)
		_, _ = client.ResumeSessionAs(ctx, "a", durablememory.SessionBinding{}, nil)
	},
	"TransferService.ExportNamespace": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_ = client.ExportNamespace(ctx, &strings.Builder{})
	},
	"TransferService.ImportNamespace": func(ctx context.Context, client *durablememory.Client, _ *durablememory.Run) {
		_, _ = client.ImportNamespace(ctx, strings.NewReader(""), nil)
	},
}

// rpcs is every RPC of the contract, by Service.Method.
func rpcs() map[string]protoreflect.MethodDescriptor {
	found := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("durablememory.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				found[string(service.Name())+"."+string(service.Methods().Get(j).Name())] = service.Methods().Get(j)
			}
		}
		return true
	})
	return found
}

func TestEveryRPCOfTheContractHasAMethod(t *testing.T) {
	for name, described := range rpcs() {
		t.Run(name, func(t *testing.T) {
			call, known := everyRPC[name]
			if !known {
				t.Fatal("the client has no method for it")
			}
			run, server := begun(t)
			if name == watchNamespace {
				server.Answers(name, scripted.Reply(changeAt(1)))
			}
			before := len(server.Asked(name))
			client := newClient(t, durablememory.WithAddress(server.Address), durablememory.WithNamespace(testNamespace))
			call(t.Context(), client, run)
			asked := server.Asked(name)[before:]
			if len(asked) == 0 {
				t.Fatal("its method does not call it")
			}
			for _, each := range asked {
				complete(t, described, each.Requests[0])
			}
		})
	}
	for name := range everyRPC {
		if _, known := rpcs()[name]; !known {
			t.Errorf("%s is no RPC", name)
		}
	}
}

// complete tells whether a request has what every request has: its namespace, and a request id if it changes something.
func complete(t *testing.T, described protoreflect.MethodDescriptor, request proto.Message) {
	t.Helper()
	message := request.ProtoReflect()
	if field := described.Input().Fields().ByName("namespace"); field != nil && !message.Has(field) {
		t.Error("its request has no namespace")
	}
	changes := true
	if recall, ok := request.(*pb.ActiveRecallRequest); ok {
		changes = recall.GetAdmit()
	}
	if field := described.Input().Fields().ByName("request_id"); field != nil && message.Has(field) != changes {
		t.Errorf("its request has a request id: %v", message.Has(field))
	}
}
