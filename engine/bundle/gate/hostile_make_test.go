// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// packed is what is in an archive, in an order.
type packed []struct {
	header tar.Header
	body   string
}

func (p *packed) add(name, body string) {
	*p = append(*p, struct {
		header tar.Header
		body   string
	}{tar.Header{Name: name, Typeflag: tar.TypeReg}, body})
}

func (p packed) write(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, e := range p {
		e.header.Mode, e.header.Size = 0o644, int64(len(e.body))
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (p packed) with(name, from, to string) packed {
	out := slices.Clone(p)
	for i := range out {
		if out[i].header.Name == name {
			out[i].body = strings.Replace(out[i].body, from, to, 1)
		}
	}
	return out
}

func unzipped(t testing.TB, archive []byte) (out packed) {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out.add(h.Name, string(body))
	}
}

// signer is the trusted pair of keys, or another one.
type signer struct{ private, public string }

func newSigner(t testing.TB) signer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return signer{
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text})),
	}
}

func (s signer) sign(t testing.TB, archive []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := bundle.SignArchive(&out, bytes.NewReader(archive), bundle.Signing{Key: s.private, KeyID: "k"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (s signer) trusted() *bundle.Verification {
	return &bundle.Verification{Required: true, Keys: map[string]*opabundle.KeyConfig{"k": {Key: s.public}}}
}

// archive makes a bundle as its recipe says; without one of its files as they are.
func (h hostile) archive(t testing.TB, us signer) []byte {
	t.Helper()
	var files packed
	for _, name := range slices.Sorted(maps.Keys(h.Files)) {
		files.add(name, h.Files[name])
	}
	signed := func() packed { return unzipped(t, us.sign(t, files.write(t))) }
	const signature = "/.signatures.json"
	switch h.Make {
	case "":
	case "zip-bomb":
		files.add("zeros.txt", strings.Repeat("\x00", 256<<20))
	case "data-of-100-mb":
		files.add("data.json", `{"extend": {"rollout": {"x": {"list": "`+strings.Repeat("x", 100<<20)+`"}}}}`)
	case "three-thousand-files":
		for i := range 3000 {
			files.add(fmt.Sprintf("f%d.rego", i), "package extend.rollout.x\n")
		}
	case "symlink":
		files.add("y.rego", "")
		files[len(files)-1].header.Typeflag, files[len(files)-1].header.Linkname = tar.TypeSymlink, "/etc/passwd"
	case "a-file-twice":
		files.add("x.rego", "package override.rollout\n")
	case "invalid-utf-8":
		files = files.with("x.rego", "\u00ff", "\xff")
	case "deep-data":
		files.add("extend/rollout/x/data.json", `{"list": `+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`)
	case "deep-source":
		files.add("x.rego", "package extend.rollout.x\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if "+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"\n")
	case "yaml-aliases":
		text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
		for c := 'b'; c <= 'i'; c++ {
			text += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
		}
		files.add("extend/rollout/x/data.yaml", text)
	case "ten-thousand-rules":
		var text strings.Builder
		text.WriteString("package extend.rollout.x\n\n")
		for i := range 10_000 {
			fmt.Fprintf(&text, "hold contains {\"reason\": \"R\", \"message\": \"%d\"} if input.update > 1000\n", i)
		}
		files.add("x.rego", text.String())
	case "signature-stripped":
		files = signed().with("/x.rego", "1000", "0")
		files = slices.DeleteFunc(files, func(e struct {
			header tar.Header
			body   string
		}) bool {
			return e.header.Name == signature
		})
	case "signature-forged":
		files = forged(t, signed(), signature, func(_, said string) (string, string) {
			return `{"alg":"EdDSA","kid":"k"}`, strings.Replace(said, `"files":[`, `"files":[{"name":"y.rego","hash":"00","algorithm":"SHA-256"},`, 1)
		})
	case "signature-without-algorithm":
		files = forged(t, signed(), signature, func(_, said string) (string, string) { return `{"alg":"none","kid":"k"}`, said })
	case "signature-of-another-key":
		return newSigner(t).sign(t, files.write(t))
	case "changed-after-signing":
		files = signed().with("/x.rego", "1000", "0")
	case "added-after-signing":
		files = signed()
		files.add("/y.rego", "package extend.rollout.y\n\nrank := {}\n")
	default:
		t.Fatalf("there is no recipe %s", h.Make)
	}
	return files.write(t)
}

// forged has another header and other claims under the signature.
func forged(t testing.TB, files packed, name string, change func(header, said string) (string, string)) packed {
	t.Helper()
	for i := range files {
		if files[i].header.Name != name {
			continue
		}
		before, token, _ := strings.Cut(files[i].body, `["`)
		if token == "" {
			before, token, _ = strings.Cut(files[i].body, "[\n    \"")
			before = strings.TrimSpace(before)
		}
		token, after, _ := strings.Cut(token, `"`)
		parts := strings.Split(token, ".")
		if len(parts) != 3 {
			t.Fatalf("%s has no token: %s", name, files[i].body)
		}
		read := func(part string) string {
			text, err := base64.RawURLEncoding.DecodeString(part)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		header, said := change(read(parts[0]), read(parts[1]))
		parts[0], parts[1] = base64.RawURLEncoding.EncodeToString([]byte(header)), base64.RawURLEncoding.EncodeToString([]byte(said))
		files[i].body = before + `["` + strings.Join(parts, ".") + `"` + after
	}
	return files
}
