// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// The manifests of a release. The CRDs are a file of their own: deleting one deletes all objects of its kind, and their pods with them.
const (
	crdsFile     = "install-crds.yaml"
	manifestFile = "install.yaml"
)

const crdsHeader = `# The CRDs of Regatta %[1]s. Deleting them deletes every object of their kinds, and the pods of those.
`

const manifestHeader = `# Regatta %[1]s without Helm, with the defaults of its chart:
#
#   kubectl apply --server-side -f ` + crdsFile + ` -f ` + manifestFile + `
#
# What needs Helm is not in it: the check before an upgrade, the one before an
# uninstall, and the removal of objects that a later version does not have.
`

// addManifests renders the chart for those who install without Helm.
func (w *writer) addManifests(ctx context.Context) error {
	w.Report("Rendering manifests")
	rendered, err := w.renderManifest(ctx)
	if err != nil {
		return err
	}
	crds, rest, err := splitManifest(rendered)
	if err != nil {
		return err
	}
	version := bareVersion(w.Version)
	return errors.Join(
		w.addFile(crdsFile, []byte(fmt.Sprintf(crdsHeader, version)+crds)),
		w.addFile(manifestFile, []byte(fmt.Sprintf(manifestHeader, version)+rest)),
	)
}

// oldestKubernetes is the version in what a chart says of the Kubernetes that it needs.
var oldestKubernetes = regexp.MustCompile(`\d+\.\d+\.\d+`)

// renderManifest has Helm render the packed chart, without hooks, which only Helm runs.
func (w *writer) renderManifest(ctx context.Context) (out string, err error) {
	home, err := os.MkdirTemp("", "regatta-helm-")
	if err != nil {
		return "", fmt.Errorf("making a folder for Helm: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	needed, _ := w.release.Chart.Metadata["kubeVersion"].(string)
	oldest := oldestKubernetes.FindString(needed)
	if oldest == "" {
		return "", fmt.Errorf("the chart does not say which Kubernetes it needs: its kubeVersion is %q", needed)
	}
	command := exec.CommandContext(ctx, w.Helm, "template", w.release.Chart.Name, filepath.Join(w.into, w.release.Chart.FileName()),
		"--namespace", "default", "--no-hooks", "--kube-version", oldest)
	// Nothing of the user who makes the release: no plugins, no cluster.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + os.DevNull}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("rendering the chart: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// splitManifest takes the CRDs out of a manifest. Labels say that Helm manages the objects, which is not so here.
func splitManifest(rendered string) (crds, rest string, err error) {
	var to [2]strings.Builder
	for document := range strings.SplitSeq("\n"+rendered, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var object struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return "", "", fmt.Errorf("reading what Helm rendered: %w", err)
		}
		if object.Kind == "" {
			return "", "", fmt.Errorf("reading what Helm rendered: a document has no kind: %.200s", document)
		}
		at := 1
		if object.Kind == "CustomResourceDefinition" {
			at = 0
		}
		to[at].WriteString("---\n" + strings.TrimSpace(strings.ReplaceAll(document, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")) + "\n")
	}
	return to[0].String(), to[1].String(), nil
}
