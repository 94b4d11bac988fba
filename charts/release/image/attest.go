// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The parts of SPDX 2.3 that a list of modules needs.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string          `json:"SPDXID"`
		Name      string          `json:"name"`
		Version   string          `json:"versionInfo"`
		Download  string          `json:"downloadLocation"`
		Analyzed  bool            `json:"filesAnalyzed"`
		License   string          `json:"licenseConcluded"`
		Declared  string          `json:"licenseDeclared"`
		Copyright string          `json:"copyrightText"`
		Purpose   string          `json:"primaryPackagePurpose,omitempty"`
		Checksums []spdxChecksum  `json:"checksums,omitempty"`
		Refs      []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const (
	documentID  = "SPDXRef-DOCUMENT"
	noAssertion = "NOASSERTION"
)

// DescribePrograms makes an SBOM of programs: the modules that the linker says each was built of, and Go's standard library.
func DescribePrograms(programs []string, origin Origin) ([]byte, error) {
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: documentID, Name: "regatta-" + origin.Version,
		Creation: spdxCreation{Created: origin.Created.UTC().Format(time.RFC3339), Creators: []string{"Organization: Regatta", "Tool: regatta-release"}},
	}
	modules := map[string]spdxPackage{}
	hash := sha256.New()
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("reading what %s was built of: %w", filepath.Base(program), err)
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("reading the program: %w", err)
		}
		sum := sha256.Sum256(content)
		hash.Write(sum[:])
		id := "SPDXRef-Program-" + filepath.Base(program)
		d.Packages = append(d.Packages, spdxPackage{
			ID: id, Name: filepath.Base(program), Version: origin.Version, Download: noAssertion, License: "Apache-2.0", Declared: "Apache-2.0",
			Copyright: noAssertion, Purpose: "APPLICATION", Checksums: []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}},
		})
		d.Relationships = append(d.Relationships, spdxRelationship{documentID, "DESCRIBES", id})
		for _, m := range modulesOf(info) {
			one := newModule(m)
			modules[one.ID] = one
			d.Relationships = append(d.Relationships, spdxRelationship{id, "DEPENDS_ON", one.ID})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(modules)) {
		d.Packages = append(d.Packages, modules[id])
	}
	d.Namespace = Sources + "/sbom/" + hex.EncodeToString(hash.Sum(nil))
	return json.MarshalIndent(d, "", " ")
}

// modulesOf are the modules of a program, each as it was replaced, with the standard library as the module that package URLs have for it.
func modulesOf(info *debug.BuildInfo) []*debug.Module {
	out := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, m)
	}
	return out
}

func newModule(m *debug.Module) spdxPackage {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, m.Path+"-"+m.Version)
	return spdxPackage{
		ID: "SPDXRef-Module-" + name, Name: m.Path, Version: m.Version, Download: noAssertion, License: noAssertion, Declared: noAssertion, Copyright: noAssertion,
		Purpose: "LIBRARY", Refs: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
	}
}

// BuildProvenance is how the image of a name was built, as a statement of in-toto with the provenance of SLSA. It is not signed: the one who
// pushes the image signs it.
func (b *Built) BuildProvenance(name string) ([]byte, error) {
	digest, err := b.Index.Digest()
	if err != nil {
		return nil, fmt.Errorf("finding the digest of the image: %w", err)
	}
	return describeBuild(name, digest, b.Origin, b.Platforms)
}

func describeBuild(name string, digest v1.Hash, origin Origin, platforms []Platform) ([]byte, error) {
	names := make([]string, len(platforms))
	for i := range platforms {
		names[i] = platforms[i].String()
	}
	sources := map[string]any{"uri": "git+" + Sources, "digest": map[string]string{"gitCommit": origin.Revision}}
	if origin.Modified { // no commit has them
		sources = map[string]any{"uri": "git+" + Sources, "annotations": map[string]any{"modified": true, "after": origin.Revision}}
	}
	return json.MarshalIndent(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"name": name, "digest": map[string]string{digest.Algorithm: digest.Hex}}},
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            Sources + "/blob/main/charts/README.md#the-image",
				"externalParameters":   map[string]any{"version": origin.Version, "platforms": names},
				"resolvedDependencies": []any{sources},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": Sources + "/charts/release"}},
		},
	}, "", " ")
}
