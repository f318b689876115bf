package testprovider

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"google.golang.org/grpc"
)

// ListResource lists the objects of the world whose names begin with the argument name. Without
// a world, it lists as many objects as the argument number says, three by default. It ends at the
// limit.
func (s *server) ListResource(req *pb6.ListRequest, out grpc.ServerStreamingServer[pb6.ListEvent]) error {
	config, err := decodeValue(req.Config, s.codec(s.list))
	if err != nil {
		return err
	}
	fault := text(config, "misbehave")
	if fault == "error" {
		return out.Send(&pb6.ListEvent{Diagnostics: problem("List failed", "The list resource was told to fail.", "misbehave")})
	}
	objects, err := s.listed(config)
	if err != nil {
		return err
	}
	for i, obj := range objects {
		if req.Limit > 0 && int64(i) == req.Limit && fault != "unlimited" {
			return nil
		}
		name := text(obj, "name")
		if name == "" {
			name = fmt.Sprintf("object %d", i)
		}
		ev := &pb6.ListEvent{DisplayName: name, Identity: s.identityOf("test_object", obj)}
		switch fault {
		case "noidentity":
			ev.Identity = nil
		case "warn":
			ev.Diagnostics = []*pb6.Diagnostic{{Severity: pb6.Diagnostic_WARNING, Summary: "Object is old", Detail: name + " is old."}}
		}
		if req.IncludeResourceObject && fault != "noobject" {
			ev.ResourceObject = encodeValue(obj, s.codec(s.object))
		}
		if err := out.Send(ev); err != nil {
			return err
		}
	}
	return nil
}

// listed returns the objects to list.
func (s *server) listed(config cty.Value) ([]cty.Value, error) {
	var out []cty.Value
	world := s.settings().world
	if world == "" {
		n := number(config, "number")
		if config.GetAttr("number").IsNull() {
			n = 3
		}
		for i := range n {
			out = append(out, with(s.object.Empty(), "id", cty.StringVal(fmt.Sprintf("id-%d", i))))
		}
		return out, nil
	}
	files, err := os.ReadDir(world)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files { // sorted by name
		id, ok := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".json"), "test_object.")
		if _, err := url.PathUnescape(id); !ok || err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(world, f.Name()))
		if err != nil {
			return nil, err
		}
		obj, err := ctyjson.Unmarshal(b, s.object.ImpliedType())
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(text(obj, "name"), text(config, "name")) {
			out = append(out, obj)
		}
	}
	return out, nil
}
