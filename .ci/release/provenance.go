package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const provenanceFile = "provenance.json"

// localBuilder is the URI of a build outside of a build system.
const localBuilder = "urn:terrace:builder:local"

// provenance writes an in-toto statement with a SLSA provenance: from which commit, with which
// options and by which system the files in the output directory were built.
func (r *release) provenance() error {
	list, err := r.sums()
	if err != nil {
		return err
	}
	program, err := buildinfo.ReadFile(filepath.Join(r.programs(r.targets[0]), r.targets[0].file(programs[0])))
	if err != nil {
		return err
	}
	var subjects []*intoto.ResourceDescriptor
	for _, s := range list {
		subjects = append(subjects, &intoto.ResourceDescriptor{Name: s.name, Digest: map[string]string{"sha256": s.sha256}})
	}
	var targets []any
	for _, t := range r.targets {
		targets = append(targets, t.system+"/"+t.processor)
	}
	options, err := structpb.NewStruct(map[string]any{"version": r.source.tag, "address": r.address, "targets": targets})
	if err != nil {
		return err
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:          r.source.repository + "/blob/main/.ci/release",
			ExternalParameters: options,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + r.source.repository, Digest: map[string]string{"gitCommit": r.source.commit}},
				{Name: "go", Uri: "pkg:golang/stdlib@" + strings.TrimPrefix(program.GoVersion, "go")},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: r.builder}},
	}
	if err := predicate.Validate(); err != nil {
		return err
	}
	b, err := protojson.Marshal(predicate)
	if err != nil {
		return err
	}
	fields := &structpb.Struct{}
	if err := protojson.Unmarshal(b, fields); err != nil {
		return err
	}
	statement := &intoto.Statement{
		Type:          intoto.StatementTypeUri,
		Subject:       subjects,
		PredicateType: "https://slsa.dev/provenance/v1",
		Predicate:     fields,
	}
	if err := statement.Validate(); err != nil {
		return err
	}
	if b, err = protojson.Marshal(statement); err != nil {
		return err
	}
	var text bytes.Buffer // protojson varies its spaces
	if err := json.Compact(&text, b); err != nil {
		return err
	}
	text.WriteByte('\n')
	return os.WriteFile(filepath.Join(r.out, provenanceFile), text.Bytes(), 0o666)
}
