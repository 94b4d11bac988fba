// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// archiveKey is the key in a ConfigMap for a whole archive.
const archiveKey = "bundle.tar.gz"

func (f *Fetcher) configMap(ctx context.Context, from ConfigMap, before *Fetched) (*Fetched, error) {
	what := "configmap " + from.Namespace + "/" + from.Name
	m := &corev1.ConfigMap{}
	err := f.reader.Get(ctx, types.NamespacedName(from), m)
	switch {
	case apierrors.IsNotFound(err):
		return nil, NotFoundError{what, "create it: kubectl create configmap " + from.Name + " -n " + from.Namespace + " --from-file=bundle.tar.gz"}
	case apierrors.IsForbidden(err):
		return nil, ForbiddenError{what, "let the service account " + f.account.String() + " get configmaps, as the chart does"}
	case err != nil:
		return nil, UnavailableError{what, err}
	}
	reference := "configmap/" + from.Namespace + "/" + from.Name + "@" + m.ResourceVersion
	if before != nil && before.Reference == reference {
		return before, nil
	}
	got, err := contentOf(what, m)
	if err != nil {
		return nil, err
	}
	got.Reference = reference
	return got, nil
}

// contentOf reads the bundle in a ConfigMap.
func contentOf(what string, m *corev1.ConfigMap) (*Fetched, error) {
	if _, ok := m.Data[archiveKey]; ok {
		return nil, ContentError{what, "has " + archiveKey + " as text; it belongs into binaryData, where kubectl create configmap --from-file=" + archiveKey + " puts it"}
	}
	files, err := filesOf(what, m)
	if err != nil {
		return nil, err
	}
	archive, ok := m.BinaryData[archiveKey]
	switch {
	case ok && len(files) > 0:
		return nil, ContentError{what, fmt.Sprintf("has %s and also the key %s; it must have either an archive or files", archiveKey, slices.Sorted(maps.Keys(files))[0])}
	case ok:
		return newFetched(what, archive)
	case len(files) == 0:
		return nil, ContentError{what, "has no bundle: it needs the key " + archiveKey + " in binaryData, or keys that end with .rego"}
	}
	return packFiles(what, files)
}

func filesOf(what string, m *corev1.ConfigMap) (map[string]string, error) {
	files := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		switch path.Ext(key) {
		case ".rego", ".json", ".yaml", ".yml", ".manifest":
		default:
			continue
		}
		p, ok := fileOf(key)
		if !ok {
			return nil, ContentError{what, fmt.Sprintf("has the key %q, which is neither a policy nor data: policies end with .rego; data is in data.json, or in a folder like extend__rollout__freeze__data.json, where __ stands for a slash", key)}
		}
		files[p] = m.Data[key]
	}
	for _, key := range slices.Sorted(maps.Keys(m.BinaryData)) {
		if _, ok := fileOf(key); ok {
			return nil, ContentError{what, fmt.Sprintf("has the key %q in binaryData, for it is not UTF-8 text", key)}
		}
	}
	return files, nil
}

// fileOf returns the path of the file of a key, if it is part of a bundle. Only data files are in
// folders, since folders matter only for data: in the name of a policy __ may be a part of the name,
// as in freeze__test.rego.
func fileOf(key string) (string, bool) {
	if path.Ext(key) == ".rego" || key == ".manifest" || key == ".signatures.json" {
		return key, true
	}
	for _, data := range []string{"data.json", "data.yaml", "data.yml"} {
		if key == data {
			return key, true
		}
		if folder, ok := strings.CutSuffix(key, "__"+data); ok {
			return strings.ReplaceAll(folder, "__", "/") + "/" + data, true
		}
	}
	return "", false
}

// PackInline makes the archive of a source whose files stand in the object. The errors are permanent.
func PackInline(files map[string]string) (*Fetched, error) {
	got, err := packFiles("files", files)
	if err != nil {
		return nil, err
	}
	got.Reference = "files@" + got.Digest
	return got, nil
}

// packFiles makes an archive of files.
func packFiles(what string, files map[string]string) (*Fetched, error) {
	if len(files) == 0 {
		return nil, ContentError{what, "has no files, and a bundle has at least one that ends with .rego"}
	}
	var out bytes.Buffer
	if err := bundle.PackFiles(&out, files); err != nil {
		return nil, ContentError{what, "cannot be a bundle: " + err.Error()}
	}
	got, err := newFetched(what, out.Bytes())
	if err != nil {
		return nil, err
	}
	got.Packed = true
	return got, nil
}
