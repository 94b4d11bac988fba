// SPDX-License-Identifier: Apache-2.0

// Package openkruise reads objects as OpenKruise leaves them in a cluster, for tests of a
// change to Regatta.
package openkruise

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Objects are those of a file, of which there must be some.
func Objects(t testing.TB, s *runtime.Scheme, file string) (out []client.Object) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	decode, reader := serializer.NewCodecFactory(s).UniversalDeserializer().Decode, utilyaml.NewYAMLReader(bufio.NewReader(f))
	for {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "kind:") {
			continue
		}
		o, _, err := decode(raw, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o.(client.Object))
	}
	if len(out) < 5 {
		t.Fatalf("%s has %d objects", file, len(out))
	}
	return out
}

// Stage are the SidecarSets, revisions and pods of one stage of a file that has several.
func Stage(t testing.TB, s *runtime.Scheme, file, stage string) (out []client.Object) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var stages []struct {
		Phase                 string
		Sets, Revisions, Pods []runtime.RawExtension
	}
	if err := yaml.Unmarshal(text, &stages); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	decode := serializer.NewCodecFactory(s).UniversalDeserializer().Decode
	for _, one := range stages {
		if one.Phase != stage {
			continue
		}
		for _, raw := range slices.Concat(one.Sets, one.Revisions, one.Pods) {
			o, _, err := decode(raw.Raw, nil, nil)
			if err != nil {
				t.Fatalf("reading %s: %v", file, err)
			}
			out = append(out, o.(client.Object))
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no stage %s", file, stage)
	}
	return out
}
