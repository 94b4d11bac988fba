// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// writeMetadata writes into Chart.yaml what Artifact Hub shows of a chart: its icon, image, CRDs and changes.
func writeMetadata(chart string) error {
	text, err := renderMetadata(chart)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(chart, metadataFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing what the chart says of itself: %w", err)
	}
	return nil
}

const metadataFile = "Chart.yaml"

// renderMetadata is Chart.yaml as it should be. What people write in it stays, with its comments.
func renderMetadata(chart string) (string, error) {
	data, err := os.ReadFile(filepath.Join(chart, metadataFile))
	if err != nil {
		return "", fmt.Errorf("reading what the chart says of itself: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return "", fmt.Errorf("parsing %s: %w", metadataFile, err)
	}
	icon, err := os.ReadFile(filepath.Join(chart, "icon.svg"))
	if err != nil {
		return "", fmt.Errorf("reading the icon: %w", err)
	}
	changes, err := readChanges(filepath.Join(chart, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	crds, err := describeCRDs(filepath.Join(chart, "files", "crds"))
	if err != nil {
		return "", err
	}
	root := document.Content[0]
	version, annotations := findKey(root, "appVersion"), findKey(root, "annotations")
	if version == nil || annotations == nil {
		return "", fmt.Errorf("%s has no appVersion or no annotations", metadataFile)
	}
	err = errors.Join(
		setText(root, "icon", "data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString(bytes.TrimSpace(icon))),
		setList(annotations, "artifacthub.io/changes", []any{changes}),
		setList(annotations, "artifacthub.io/images", []any{&imageEntry{"regatta", repository + ":" + version.Value, []string{"linux/amd64", "linux/arm64"}}}),
		setList(annotations, "artifacthub.io/crds", crds),
	)
	if err != nil {
		return "", fmt.Errorf("%s: %w", metadataFile, err)
	}
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = encoder.Encode(&document)
	return out.String(), err
}

// repository is where the image of the chart is by default.
const repository = "ghcr.io/regatta-sh/regatta"

type imageEntry struct {
	Name      string
	Image     string
	Platforms []string
}

type crdEntry struct {
	Kind        string
	Version     string
	Name        string
	DisplayName string `yaml:"displayName"`
	Description string
}

// readChanges is the first paragraph of the newest section of a changelog.
func readChanges(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the changelog: %w", err)
	}
	found := regexp.MustCompile(`(?m)^## .*\n\n([^#\n][^\n]*(?:\n[^\n]+)*)\n`).FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s: no section begins with a paragraph", path)
	}
	return strings.Join(strings.Fields(string(found[1])), " "), nil
}

// describeCRDs lists the CRDs in a folder by their names, with the first sentence of each one's description.
func describeCRDs(folder string) ([]any, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s has no CRDs: %w", folder, err)
	}
	slices.Sort(paths)
	var entries []any
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a CRD: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := sigsyaml.Unmarshal(data, &crd); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", path, err)
		}
		newest := crd.Spec.Versions[len(crd.Spec.Versions)-1]
		sentence, _, _ := strings.Cut(strings.Join(strings.Fields(newest.Schema.OpenAPIV3Schema.Description), " "), ". ")
		if sentence == "" {
			return nil, fmt.Errorf("%s: %s has no description", path, newest.Name)
		}
		entries = append(entries, &crdEntry{crd.Spec.Names.Kind, newest.Name, crd.Name, crd.Spec.Names.Kind, strings.TrimSuffix(sentence, ".") + "."})
	}
	return entries, nil
}

// findKey returns the value of a key of a map, nil if there is none.
func findKey(in *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == key {
			return in.Content[i+1]
		}
	}
	return nil
}

func setText(in *yaml.Node, key, text string) error {
	value := findKey(in, key)
	if value == nil {
		return fmt.Errorf("there is no %s", key)
	}
	value.Value, value.Style = text, 0
	if strings.Contains(text, "\n") {
		value.Style = yaml.LiteralStyle
	}
	return nil
}

// setList sets a key of a map to a text that is a list in YAML, as annotations of Artifact Hub are.
func setList(in *yaml.Node, key string, entries []any) error {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(entries); err != nil {
		return err
	}
	return setText(in, key, text.String())
}
