// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine/bundle"
)

const (
	policy = "package extend.rollout.a\n\nrank := {}\n"
	secret = "a secret that is long enough for everybody"
)

// pair is a private and a public key in PEM.
type pair struct{ private, public string }

func keysOf(t testing.TB, private crypto.Signer) pair {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
	}
}

func rsaKeys(t testing.TB) pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return keysOf(t, key)
}

func ecKeys(t testing.TB, curve elliptic.Curve) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keysOf(t, key)
}

func sign(t testing.TB, text []byte, with bundle.Signing) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := bundle.SignArchive(&out, bytes.NewReader(text), with); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func trust(key, algorithm string) *bundle.Verification {
	return &bundle.Verification{Required: true, Keys: map[string]*opabundle.KeyConfig{"k": {Key: key, Algorithm: algorithm}}}
}

func TestSignaturesOfEveryKind(t *testing.T) {
	rsa, p256, p521 := rsaKeys(t), ecKeys(t, elliptic.P256()), ecKeys(t, elliptic.P521())
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards := keysOf(t, ed)
	plain := archive(t, file("/a.rego", policy), file("extend/rollout/a/data.yaml", "x: 1"), file("README.md", "# A"), file(".manifest", `{"revision": "7"}`))
	for name, tc := range map[string]struct {
		with      bundle.Signing
		by        *bundle.Verification
		algorithm string
	}{
		"an RSA key":                     {bundle.Signing{Key: rsa.private}, trust(rsa.public, ""), "RS256"},
		"an RSA key with padding of PSS": {bundle.Signing{Key: rsa.private, Algorithm: "PS384"}, trust(rsa.public, "PS384"), "PS384"},
		"a key on P-256":                 {bundle.Signing{Key: p256.private, KeyID: "k"}, trust(p256.public, ""), "ES256"},
		"a key on P-521":                 {bundle.Signing{Key: p521.private}, trust(p521.public, ""), "ES512"},
		"an Ed25519 key":                 {bundle.Signing{Key: edwards.private}, trust(edwards.public, ""), "EdDSA"},
		"a secret":                       {bundle.Signing{Key: secret, Algorithm: "HS256"}, trust(secret, "HS256"), "HS256"},
	} {
		t.Run(name, func(t *testing.T) {
			signed := sign(t, plain, tc.with)
			b, err := bundle.FromArchive("own", bytes.NewReader(signed), tc.by)
			if err != nil {
				t.Fatal(err)
			}
			want := bundle.Signature{KeyID: tc.with.KeyID, Algorithm: tc.algorithm, Files: 4, Verified: true}
			if b.Signature == nil {
				t.Fatal("it has no signature")
			}
			if len(b.Signature.Key) != 64 || !tc.by.TrustsBundle(b) {
				t.Errorf("the key %q is not the one that it was verified by", b.Signature.Key)
			}
			if want.Key = b.Signature.Key; *b.Signature != want {
				t.Errorf("the signature is %+v, want %+v", b.Signature, want)
			}
			again, err := bundle.FromArchive("own", bytes.NewReader(sign(t, signed, tc.with)), tc.by)
			if err != nil || again.Signature.Files != 4 {
				t.Errorf("signed once more it is %+v, %v", again, err)
			}
			if b, err := bundle.FromArchive("own", bytes.NewReader(signed), nil); err != nil || b.Signature.Verified {
				t.Errorf("without keys it is %+v, %v", b, err)
			}
			for id, k := range tc.by.Keys { // OPA has no default but RS256
				k.Algorithm = tc.algorithm
				config := opabundle.NewVerificationConfig(map[string]*opabundle.KeyConfig{id: k}, id, "", nil)
				if _, err := opabundle.NewReader(bytes.NewReader(signed)).WithBundleVerificationConfig(config).Read(); err != nil {
					t.Errorf("OPA refuses it: %v", err)
				}
			}
		})
	}
}

func TestSignaturesThatDoNotCount(t *testing.T) {
	ours, theirs, ec := rsaKeys(t), rsaKeys(t), ecKeys(t, elliptic.P256())
	own := bundle.Signing{Key: ours.private}
	plain := archive(t, file("/a.rego", policy), file("/b.rego", policy))
	// with takes the signature of an archive to other files.
	with := func(signed []byte, entries ...entry) []byte {
		t.Helper()
		b, err := opabundle.NewReader(bytes.NewReader(signed)).WithSkipBundleVerification(false).
			WithBundleVerificationConfig(opabundle.NewVerificationConfig(map[string]*opabundle.KeyConfig{"k": {Key: ours.public, Algorithm: "RS256"}}, "k", "", nil)).Read()
		if err != nil {
			t.Fatal(err)
		}
		return archive(t, append(entries, file("/.signatures.json", fmt.Sprintf(`{"signatures": [%q], "plugin": "none"}`, b.Signatures.Signatures[0])))...)
	}
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"files":[]}`)) + "."
	weak, err := opabundle.GenerateSignedToken([]opabundle.FileInfo{opabundle.NewFile("a.rego", hex.EncodeToString([]byte("x")), "MD5")}, opabundle.NewSigningConfig(ours.private, "RS256", ""), "k")
	if err != nil {
		t.Fatal(err)
	}
	signed := sign(t, plain, own)
	rogue := "package extend.rollout.c\n\nrank := {}\n"
	for name, tc := range map[string]struct {
		archive []byte
		by      *bundle.Verification
		file    string
		err     string
	}{
		"not signed":          {archive: plain, file: ".signatures.json", err: "must be signed"},
		"stripped":            {archive: archive(t, file("/a.rego", policy), file("/b.rego", policy)), file: ".signatures.json", err: "must be signed"},
		"signed by others":    {archive: sign(t, plain, bundle.Signing{Key: theirs.private}), file: ".signatures.json", err: `it was not made with the key "k", or was changed since: failed to verify`},
		"another kind of key": {archive: sign(t, plain, bundle.Signing{Key: ec.private}), file: ".signatures.json", err: "verify"},
		"by an unknown key":   {archive: sign(t, plain, bundle.Signing{Key: ours.private, KeyID: "x"}), file: ".signatures.json", err: `there is no key "x"; there is k`},
		"for another scope":   {archive: sign(t, plain, bundle.Signing{Key: ours.private, Scope: "test"}), file: ".signatures.json", err: `it was made for the scope "test", and must be for `},
		"for no scope":        {archive: signed, by: &bundle.Verification{Keys: trust(ours.public, "").Keys, Scope: "prod"}, file: ".signatures.json", err: `it was made for the scope "", and must be for "prod"`},
		"a changed file":      {archive: with(signed, file("/a.rego", policy), file("/b.rego", rogue)), file: "b.rego", err: "not as it was signed"},
		"a file too much":     {archive: with(signed, file("/a.rego", policy), file("/b.rego", policy), file("/c.rego", rogue)), file: "c.rego", err: "not among those that were signed"},
		"no policy, too much": {archive: with(signed, file("/a.rego", policy), file("/b.rego", policy), file("/c.sh", "x")), file: "c.sh", err: "not among those that were signed"},
		"a manifest too much": {archive: with(signed, file("/a.rego", policy), file("/b.rego", policy), file("/.manifest", "{}")), file: ".manifest", err: "not among those that were signed"},
		"a file less":         {archive: with(signed, file("/a.rego", policy)), file: "b.rego", err: "signed but is missing"},
		"data that laughs":    {archive: with(sign(t, archive(t, file("data.yaml", "x: 1")), own), file("/data.yaml", laughs())), file: "data.yaml", err: "not as it was signed"},
		"names exchanged":     {archive: with(signed, file("/a.rego", policy), file("/x.rego", policy)), file: "x.rego", err: "not among"},
		"no algorithm":        {archive: archive(t, file("/.signatures.json", fmt.Sprintf(`{"signatures": [%q]}`, unsigned))), file: ".signatures.json", err: "verify"},
		"two signatures":      {archive: archive(t, file("/.signatures.json", `{"signatures": ["a.b.c", "d.e.f"]}`)), file: ".signatures.json", err: "2 signatures"},
		"no signature in it":  {archive: archive(t, file("/.signatures.json", `{"plugin": "x"}`)), file: ".signatures.json", err: "0 signatures"},
		"a hash that is weak": {archive: archive(t, file("/a.rego", policy), file("/.signatures.json", fmt.Sprintf(`{"signatures": [%q]}`, weak))), file: "a.rego", err: "MD5 can be forged"},
		"a public key, as a secret": {
			archive: sign(t, plain, bundle.Signing{Key: ours.public, Algorithm: "HS256"}), by: trust(ours.public, "HS256"),
			file: ".signatures.json", err: "the algorithm is HS256, and for a key like this it is one of RS256",
		},
		"a private key, to verify": {archive: signed, by: trust(ours.private, ""), file: ".signatures.json", err: "PRIVATE KEY is no public key"},
		"a key that is damaged": {
			archive: signed, by: trust("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", ""), file: ".signatures.json",
			err: `key "k": reading the public key: the block PUBLIC KEY is damaged or has something else in it; openssl pkey -in PRIVATE -pubout writes a public key`,
		},
		"a secret without an algorithm, which may be a public key in another format": {
			archive: sign(t, plain, bundle.Signing{Key: secret, Algorithm: "HS256"}), by: trust(secret, ""), file: ".signatures.json", err: "the key is not PEM; a secret needs an algorithm, such as HS256",
		},
		"no key is trusted": {archive: signed, by: &bundle.Verification{Required: true}, file: ".signatures.json", err: "empty"},
		"signed, though it need not be, but by others": {
			archive: sign(t, plain, bundle.Signing{Key: theirs.private}), by: &bundle.Verification{Keys: trust(ours.public, "").Keys}, file: ".signatures.json", err: "verify",
		},
	} {
		t.Run(name, func(t *testing.T) {
			by := tc.by
			if by == nil {
				by = trust(ours.public, "")
			}
			_, err := bundle.FromArchive("own", bytes.NewReader(tc.archive), by)
			var refused bundle.SignatureError
			if !errors.As(err, &refused) || refused.File != tc.file || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q of %s", err, tc.err, tc.file)
			}
		})
	}
	if b, err := bundle.FromArchive("own", bytes.NewReader(plain), &bundle.Verification{Keys: trust(ours.public, "").Keys}); err != nil || b.Signature != nil {
		t.Errorf("what need not be signed is refused: %v, %v", b, err)
	}
	scoped := &bundle.Verification{Keys: trust(ours.public, "").Keys, Scope: "prod", Required: true}
	if b, err := bundle.FromArchive("own", bytes.NewReader(sign(t, plain, bundle.Signing{Key: ours.private, Scope: "prod"})), scoped); err != nil || b.Signature.Scope != "prod" {
		t.Errorf("the scope that is wanted is refused: %v, %v", b, err)
	}
}

func TestKeysThatDoNotSign(t *testing.T) {
	rsa := rsaKeys(t)
	for name, tc := range map[string]struct {
		with bundle.Signing
		err  string
	}{
		"a secret without an algorithm":   {bundle.Signing{Key: secret}, "it is not PEM; a secret needs an algorithm, such as HS256"},
		"a public key":                    {bundle.Signing{Key: rsa.public}, "the file begins with a block PUBLIC KEY, which is none"},
		"an algorithm of another key":     {bundle.Signing{Key: rsa.private, Algorithm: "ES256"}, "for a key like this it is one of RS256"},
		"an algorithm that is not one":    {bundle.Signing{Key: rsa.private, Algorithm: "none"}, "for a key like this"},
		"a private key for a secret":      {bundle.Signing{Key: rsa.private, Algorithm: "HS256"}, "HS256 signs with a secret, and the key is a"},
		"a key with a password":           {bundle.Signing{Key: "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"}, "it has a password"},
		"an old key with a password":      {bundle.Signing{Key: "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"}, "it has a password"},
		"an empty key":                    {bundle.Signing{Key: " \n", Algorithm: "HS256"}, "reading the key: it is empty"},
		"a secret too long for a file":    {bundle.Signing{Key: strings.Repeat("s3cret", 50), Algorithm: "HS256"}, "it names no file that can be read: file name too long; write a secret like this to a file"},
		"a secret below a file":           {bundle.Signing{Key: os.Args[0] + "/s3cret", Algorithm: "HS256"}, "it names no file that can be read: not a directory"},
		"a secret with a zero byte":       {bundle.Signing{Key: "s3cret\x00", Algorithm: "HS256"}, "it names no file that can be read: invalid argument"},
		"a secret with an unknown length": {bundle.Signing{Key: secret, Algorithm: "HS1"}, "HS1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := bundle.SignArchive(&bytes.Buffer{}, bytes.NewReader(archive(t, file("a.rego", policy))), tc.with)
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %q and no secret", err, tc.err)
			}
		})
	}
}

// A public key that cannot be read is not a secret: everyone who may read the bundle has it, and could sign with it.
func TestAPublicKeyThatCannotBeReadIsNotASecret(t *testing.T) {
	public := rsaKeys(t).public
	body, _, _ := strings.Cut(public, "-----END")
	for name, text := range map[string]string{
		"without its end":                    body,
		"in one line, as YAML folds it":      strings.ReplaceAll(strings.TrimSpace(public), "\n", " "),
		"with a character that is no base64": strings.Replace(public, "A", "!", 1),
		"its first line":                     "-----BEGIN PUBLIC KEY-----\n",
		"behind a comment":                   "# the key of the platform\n" + body,
	} {
		t.Run(name, func(t *testing.T) {
			plain := archive(t, file("/a.rego", policy))
			read, err := opabundle.NewReader(bytes.NewReader(plain)).Read()
			if err != nil {
				t.Fatal(err)
			}
			// OPA looks for a file of this name first, and some keys are too long for a name.
			inFile := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(inFile, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := read.GenerateSignature(opabundle.NewSigningConfig(inFile, "HS256", ""), "k", false); err != nil {
				t.Fatal(err)
			}
			forged := archive(t, file("/a.rego", policy), file("/.signatures.json", fmt.Sprintf(`{"signatures": [%q]}`, read.Signatures.Signatures[0])))
			for _, algorithm := range []string{"", "HS256"} {
				by := trust(text, algorithm)
				if _, err := bundle.FromArchive("own", bytes.NewReader(forged), by); err == nil || !strings.Contains(err.Error(), "its PEM is damaged, or ends too early") {
					t.Errorf("with the algorithm %q: %v", algorithm, err)
				}
				if err := by.CheckKeys(); err == nil {
					t.Errorf("with the algorithm %q the key can be used", algorithm)
				}
				if n := len(by.WithUsableKeys().Keys); n != 0 {
					t.Errorf("with the algorithm %q %d keys can be used", algorithm, n)
				}
			}
		})
	}
}

// FuzzSignature writes anything into the signature of a bundle: no other key can
// sign it, and nothing panics.
func FuzzSignature(f *testing.F) {
	plain := archive(f, file("/a.rego", policy))
	signed, err := opabundle.NewReader(bytes.NewReader(sign(f, plain, bundle.Signing{Key: secret, Algorithm: "HS256", KeyID: "k"}))).
		WithBundleVerificationConfig(opabundle.NewVerificationConfig(map[string]*opabundle.KeyConfig{"k": {Key: secret, Algorithm: "HS256"}}, "k", "", nil)).Read()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"signatures": ["` + signed.Signatures.Signatures[0] + `"]}`))
	f.Add([]byte(`{"signatures": ["e30.e30.e30"]}`))
	f.Add([]byte(`{"signatures": [".."], "plugin": "x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		forged := archive(t, file("/a.rego", policy+"x := 1\n"), file("/.signatures.json", string(text)))
		for _, by := range []*bundle.Verification{trust(secret, "HS256"), {Keys: trust(secret, "HS256").Keys}} {
			if _, err := bundle.FromArchive("own", bytes.NewReader(forged), by); err == nil {
				t.Errorf("%s is taken for a signature", text)
			}
		}
	})
}
