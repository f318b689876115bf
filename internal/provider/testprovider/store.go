package testprovider

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"google.golang.org/grpc"
)

// The state store test_store keeps states and locks as files in a directory. Its chunk size
// is 16 bytes. A state with the ID torn is returned with a gap.
const chunkSize = 16

func (s *server) ConfigureStateStore(_ context.Context, req *pb6.ConfigureStoreRequest) (*pb6.ConfigureStoreResponse, error) {
	v, err := decodeValue(req.Config, s.codec(s.store))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folder = text(v, "folder")
	return &pb6.ConfigureStoreResponse{Capabilities: &pb6.StoreCapabilities{ChunkSize: chunkSize}}, nil
}

func (s *server) stateFile(id, suffix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return filepath.Join(s.folder, filepath.Base(id)+suffix)
}

func (s *server) ReadStateBytes(req *pb6.StateRequest, out grpc.ServerStreamingServer[pb6.StateChunk]) error {
	b, err := os.ReadFile(s.stateFile(req.StateId, ".state"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out.Send(&pb6.StateChunk{Diagnostics: problem("Cannot read", err.Error())})
	}
	for i := 0; i < len(b); i += chunkSize {
		if req.StateId == "torn" && i == chunkSize {
			continue
		}
		piece := b[i:min(i+chunkSize, len(b))]
		ch := &pb6.StateChunk{Bytes: piece, TotalLength: int64(len(b)), Range: &pb6.ByteRange{Start: int64(i), End: int64(i + len(piece) - 1)}}
		if err := out.Send(ch); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) WriteStateBytes(in grpc.ClientStreamingServer[pb6.WriteChunk, pb6.Diagnostics]) error {
	var id string
	var state []byte
	for {
		ch, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if ch.Meta != nil {
			id = ch.Meta.StateId
		}
		if len(ch.Bytes) > chunkSize || ch.Range.GetStart() != int64(len(state)) {
			return in.SendAndClose(&pb6.Diagnostics{Diagnostics: problem("Wrong piece", "A piece of the state is too long or out of order.")})
		}
		state = append(state, ch.Bytes...)
	}
	var out pb6.Diagnostics
	if err := os.WriteFile(s.stateFile(id, ".state"), state, 0o600); err != nil {
		out.Diagnostics = problem("Cannot write", err.Error())
	}
	return in.SendAndClose(&out)
}

func (s *server) LockState(_ context.Context, req *pb6.LockRequest) (*pb6.LockResponse, error) {
	f, err := os.OpenFile(s.stateFile(req.StateId, ".lock"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return &pb6.LockResponse{Diagnostics: problem("State is locked", "Somebody else holds the lock.")}, nil
	}
	return &pb6.LockResponse{LockId: "lock-" + req.StateId}, f.Close()
}

func (s *server) UnlockState(_ context.Context, req *pb6.UnlockRequest) (*pb6.Diagnostics, error) {
	if err := os.Remove(s.stateFile(req.StateId, ".lock")); err != nil || req.LockId != "lock-"+req.StateId {
		return &pb6.Diagnostics{Diagnostics: problem("State is not locked", "There is no such lock.")}, nil
	}
	return &pb6.Diagnostics{}, nil
}

func (s *server) GetStates(context.Context, *pb6.StatesRequest) (*pb6.StatesResponse, error) {
	entries, err := os.ReadDir(filepath.Dir(s.stateFile("x", "")))
	if err != nil {
		return nil, err
	}
	out := &pb6.StatesResponse{}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".state"); ok {
			out.StateIds = append(out.StateIds, id)
		}
	}
	return out, nil
}

func (s *server) DeleteState(_ context.Context, req *pb6.StateRequest) (*pb6.Diagnostics, error) {
	if err := os.Remove(s.stateFile(req.StateId, ".state")); err != nil {
		return &pb6.Diagnostics{Diagnostics: problem("No such state", err.Error())}, nil
	}
	return &pb6.Diagnostics{}, nil
}
