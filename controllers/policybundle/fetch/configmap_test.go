// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine/bundle"
)

func configMap(data map[string]string, binary map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "freeze"}, Data: data, BinaryData: binary}
}

var here = fetch.Source{ConfigMap: &fetch.ConfigMap{Namespace: "shop", Name: "freeze"}}

func TestAnArchiveInAConfigMapPassesUnchanged(t *testing.T) {
	text := archive(t)
	c := holding(t, configMap(nil, map[string][]byte{"bundle.tar.gz": text}))
	f := fetch.New(c)
	got, err := f.FetchBundle(t.Context(), here, nil)
	same(t, got, err, text)
	if got.Reference != "configmap/shop/freeze@999" {
		t.Errorf("the reference is %s", got.Reference)
	}
	if again, err := f.FetchBundle(t.Context(), here, got); err != nil || again != got {
		t.Errorf("it was fetched again: %v", err)
	}
	m := configMap(map[string]string{"freeze.rego": policy}, nil)
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	other, err := f.FetchBundle(t.Context(), here, got)
	if err != nil || other == got || !other.Packed || other.Reference == got.Reference {
		t.Errorf("after an update it is %+v, %v", other, err)
	}
}

func TestWhatTextInAConfigMapBecomes(t *testing.T) {
	for name, tc := range map[string]struct{ data, want map[string]string }{
		"a policy alone": {
			map[string]string{"freeze.rego": policy},
			map[string]string{"freeze.rego": policy},
		},
		"data in a folder, and underscores in the name of a policy": {
			map[string]string{"freeze__test.rego": "package extend.rollout.freeze_test\n", "freeze.rego": policy, "extend__rollout__freeze__data.yaml": "to: 5"},
			map[string]string{"freeze__test.rego": "package extend.rollout.freeze_test\n", "freeze.rego": policy, "extend/rollout/freeze/data.yaml": "to: 5"},
		},
		"data that says itself where it is": {
			map[string]string{"freeze.rego": policy, "data.json": `{"extend": {"rollout": {"freeze": {"to": 5}}}}`},
			map[string]string{"freeze.rego": policy, "data.json": `{"extend": {"rollout": {"freeze": {"to": 5}}}}`},
		},
		"what comes along with a folder": {
			map[string]string{"freeze.rego": policy, "README.md": "# Freeze", ".manifest": `{"revision": "v1"}`},
			map[string]string{"freeze.rego": policy, ".manifest": `{"revision": "v1"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetch.New(holding(t, configMap(tc.data, nil))).FetchBundle(t.Context(), here, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := bundle.FromArchive("freeze", bytes.NewReader(got.Archive), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.Files); diff != "" || !got.Packed {
				t.Errorf("packed %v: %s", got.Packed, diff)
			}
		})
	}
}

func TestASignatureOverTextStaysGood(t *testing.T) {
	b, err := bundle.FromFiles("freeze", map[string]string{"freeze.rego": policy, "extend/rollout/freeze/data.json": `{"to": 5}`})
	if err != nil {
		t.Fatal(err)
	}
	var plain, signed bytes.Buffer
	if err := b.PackArchive(&plain); err != nil {
		t.Fatal(err)
	}
	if err := bundle.SignArchive(&signed, &plain, bundle.Signing{Key: ours, Algorithm: "HS256"}); err != nil {
		t.Fatal(err)
	}
	by := &bundle.Verification{Required: true, Keys: map[string]*opabundle.KeyConfig{"k": {Key: ours, Algorithm: "HS256"}}}
	files := unpacked(t, signed.Bytes())
	data := map[string]string{}
	for p, text := range files {
		data[strings.ReplaceAll(p, "/", "__")] = text
	}
	for name, source := range map[string]fetch.Source{"a configmap": here, "files": {Files: files}} {
		got, err := fetch.New(holding(t, configMap(data, nil))).FetchBundle(t.Context(), source, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := bundle.FromArchive("freeze", bytes.NewReader(got.Archive), by); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigMapsThatAreNoBundle(t *testing.T) {
	text := archive(t)
	for name, tc := range map[string]struct {
		data   map[string]string
		binary map[string][]byte
		says   string
	}{
		"nothing in it":                      {nil, nil, "has no bundle"},
		"nothing that counts":                {map[string]string{"README.md": "x"}, nil, "has no bundle"},
		"an archive and files":               {map[string]string{"a.rego": policy}, map[string][]byte{"bundle.tar.gz": text}, "either an archive or files"},
		"an archive as text":                 {map[string]string{"bundle.tar.gz": "H4sI"}, nil, "belongs into binaryData"},
		"no archive under its name":          {nil, map[string][]byte{"bundle.tar.gz": []byte("PK")}, "is no archive"},
		"data under a name that is not read": {map[string]string{"a.rego": policy, "windows.json": "{}"}, nil, `"windows.json", which is neither a policy nor data`},
		"a policy that is no text":           {nil, map[string][]byte{"a.rego": {0xff}}, "not UTF-8"},
		"a folder above":                     {map[string]string{"a.rego": policy, "..__data.json": "{}"}, nil, "outside of the bundle"},
		"a folder of no name":                {map[string]string{"a.rego": policy, "a____data.json": "{}"}, nil, "outside of the bundle"},
		"a manifest where there is not one":  {map[string]string{"a.rego": policy, "a.manifest": "{}"}, nil, "neither a policy nor data"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetch.New(holding(t, configMap(tc.data, tc.binary))).FetchBundle(t.Context(), here, nil)
			fails[fetch.ContentError](t, err, true, "configmap shop/freeze", tc.says)
		})
	}
}

// refusing is a reader that an API server refuses.
func refusing(t *testing.T, err error) client.Reader {
	return interceptor.NewClient(holding(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
	})
}

func TestConfigMapsThatCannotBeRead(t *testing.T) {
	_, err := fetch.New(holding(t)).FetchBundle(t.Context(), here, nil)
	fails[fetch.NotFoundError](t, err, true, "configmap shop/freeze is not there", "kubectl create configmap freeze -n shop")
	_, err = fetch.New(refusing(t, apierrors.NewForbidden(corev1.Resource("configmaps"), "freeze", nil))).FetchBundle(t.Context(), here, nil)
	fails[fetch.ForbiddenError](t, err, true, "configmap shop/freeze", "kruise-system/kruise-manager")
	_, err = fetch.New(refusing(t, errors.New("connection refused"))).FetchBundle(t.Context(), here, nil)
	fails[fetch.UnavailableError](t, err, false, "connection refused")
}

func TestFilesMakeTheSameBytesEachTime(t *testing.T) {
	f := fetch.New(holding(t))
	s := fetch.Source{Files: map[string]string{"a.rego": policy, "b/c.rego": policy, "z.rego": policy}}
	first, err := f.FetchBundle(t.Context(), s, nil)
	if err != nil || !first.Packed || first.Reference != "files@"+first.Digest {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := f.FetchBundle(t.Context(), s, first); err != nil || again != first {
		t.Errorf("packed again they are %+v, %v", again, err)
	}
	s.Files["z.rego"] += "\n"
	if other, err := f.FetchBundle(t.Context(), s, first); err != nil || other == first || other.Digest == first.Digest {
		t.Errorf("changed they are %+v, %v", other, err)
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	f := fetch.New(holding(t))
	_, err := f.FetchBundle(t.Context(), fetch.Source{}, nil)
	fails[fetch.SourceError](t, err, true, "there are 0 sources")
	_, err = f.FetchBundle(t.Context(), fetch.Source{Files: map[string]string{"a.rego": policy}, ConfigMap: here.ConfigMap}, nil)
	fails[fetch.SourceError](t, err, true, "there are 2 sources")
	_, err = f.FetchBundle(t.Context(), fetch.Source{Files: map[string]string{}}, nil)
	fails[fetch.ContentError](t, err, true, "has no files")
	_, err = f.FetchBundle(t.Context(), fetch.Source{Files: map[string]string{"../a.rego": policy}}, nil)
	fails[fetch.ContentError](t, err, true, "outside of the bundle")
	_, err = f.FetchBundle(t.Context(), fetch.Source{Files: map[string]string{"/a.rego": policy, "a.rego": policy}}, nil)
	fails[fetch.ContentError](t, err, true, "a.rego is there twice")
	_, err = f.FetchBundle(t.Context(), fetch.Source{Files: map[string]string{"a.rego": noise(2 * fetch.MaxSize)}}, nil)
	fails[fetch.TooLargeError](t, err, true, "files is larger than 1048576 bytes", "make several bundles")
}

// FuzzConfigMap checks that whatever keys and texts an API server takes become
// an archive that can be read again, or an error that lasts.
func FuzzConfigMap(f *testing.F) {
	f.Add("freeze.rego", policy, "extend__rollout__freeze__data.json", "{}", []byte{})
	f.Add("..data.json", "", "a___data.json", "[", []byte{0x1f, 0x8b})
	f.Add(".signatures.json", "{}", "x__.manifest", "", []byte("PK"))
	var m *corev1.ConfigMap
	from := fetch.New(interceptor.NewClient(holding(f), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			m.DeepCopyInto(into.(*corev1.ConfigMap))
			return nil
		},
	}))
	f.Fuzz(func(t *testing.T, key, text, key2, text2 string, binary []byte) {
		data := map[string]string{key: text, key2: text2}
		for k := range data {
			if len(validation.IsConfigMapKey(k)) > 0 {
				t.Skip()
			}
		}
		m = configMap(data, nil)
		if len(binary) > 0 {
			m.BinaryData = map[string][]byte{"bundle.tar.gz": binary}
		}
		got, err := from.FetchBundle(t.Context(), here, nil)
		if err != nil {
			if !fetch.IsPermanent(err) {
				t.Fatalf("%q, %q: %v", key, key2, err)
			}
			return
		}
		if !got.Packed {
			if !bytes.Equal(got.Archive, binary) {
				t.Fatal("the archive is another")
			}
			return
		}
		texts := map[string]int{}
		for _, text := range data {
			texts[text]++
		}
		for p, text := range unpacked(t, got.Archive) {
			if texts[text] == 0 {
				t.Fatalf("%s has the text %q", p, text)
			}
		}
		again, err := from.FetchBundle(t.Context(), here, nil)
		if err != nil || again.Digest != got.Digest {
			t.Fatalf("fetched again it is %s, %v", again.Digest, err)
		}
	})
}
