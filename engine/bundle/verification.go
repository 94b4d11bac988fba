// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
)

// Verification says which signatures are trusted. Signatures are OPA's own: a JWT in .signatures.json,
// as `opa sign` makes it, over the hashes of all other files.
type Verification struct {
	// Keys has public keys in PEM, or secrets, by their id. A missing algorithm is derived from a public key:
	// RS256, ES256 to ES512, or EdDSA. A secret needs one.
	Keys map[string]*opabundle.KeyConfig
	// KeyID is the id of the key to use for every signature. If it is empty, the signature names the key;
	// if the signature names none and there is only one key, that one is used.
	KeyID string
	// Scope is the scope that a signature must have; each key may have one.
	Scope string
	// Required refuses unsigned bundles. An existing signature must be valid either way.
	Required bool
}

// SignatureError refuses an archive that no trusted key has signed in this form.
type SignatureError struct {
	// File is the file that the error is about.
	File string
	Err  error
}

func (e SignatureError) Error() string {
	return fmt.Sprintf("verifying the signature: %s: %v", e.File, e.Err)
}

func (e SignatureError) Unwrap() error { return e.Err }

// CheckKeys returns an error if a key cannot be used, or if the required key is missing. An algorithm
// that is not for its key is an AlgorithmError.
func (v *Verification) CheckKeys() error {
	for _, id := range slices.Sorted(maps.Keys(v.Keys)) {
		if _, err := completeKey(v.Keys[id]); err != nil {
			return fmt.Errorf("key %q: %w", id, err)
		}
	}
	if _, ok := v.Keys[v.KeyID]; !ok && v.KeyID != "" {
		return UnknownKeyError{v.KeyID, slices.Sorted(maps.Keys(v.Keys))}
	}
	return nil
}

// UnknownKeyError says that no key has an id.
type UnknownKeyError struct {
	KeyID string
	Known []string
}

func (e UnknownKeyError) Error() string {
	return fmt.Sprintf("there is no key %q; there is %s", e.KeyID, strings.Join(e.Known, ", "))
}

// VerifyFiles verifies files with the signature among them, in the file that OPA keeps it in, and returns the signature; nil if there is
// none and none is required. Its errors are SignatureErrors.
func (v *Verification) VerifyFiles(files map[string]string) (*Signature, error) {
	key, err := v.verifyFiles(files)
	if err != nil {
		return nil, err
	}
	s, err := signatureOf(files)
	if s != nil {
		s.Verified, s.Key = true, key
	}
	return s, err
}

// ReadSignature returns the claims of the signature among files, which is not verified; nil if there is none. Its error is a
// SignatureError.
func ReadSignature(files map[string]string) (*Signature, error) { return signatureOf(files) }

// verifyFiles verifies the files with the signature among them, and returns the hash of the key that made it; empty if there is no
// signature.
func (v *Verification) verifyFiles(files map[string]string) (key string, err error) {
	text, ok := files[signatureFile]
	if !ok && v.Required {
		return "", SignatureError{signatureFile, errors.New("the bundle must be signed, and this file is missing")}
	}
	if !ok {
		return "", nil
	}
	signed, key, err := v.verifySignature(text)
	if err != nil {
		return "", SignatureError{signatureFile, err}
	}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if p == signatureFile {
			continue
		}
		// A file that was packed with a leading slash may have been signed with it.
		name := p
		if _, ok := signed[name]; !ok {
			name = "/" + p
		}
		info, ok := signed[name]
		if !ok {
			return "", SignatureError{p, errors.New("the file is not among those that were signed")}
		}
		if info.Algorithm == opabundle.MD5.String() || info.Algorithm == opabundle.SHA1.String() {
			return "", SignatureError{p, fmt.Errorf("the hash %s can be forged", info.Algorithm)}
		}
		if err := opabundle.VerifyBundleFile(name, *bytes.NewBufferString(files[p]), signed); err != nil {
			return "", SignatureError{p, fmt.Errorf("the file is not as it was signed: %w", err)}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(signed)) {
		return "", SignatureError{strings.TrimPrefix(p, "/"), errors.New("the file was signed but is missing")}
	}
	return key, nil
}

// verifySignature returns the files that a valid signature covers; key is the hash of the key that made it.
func (v *Verification) verifySignature(text string) (signed map[string]opabundle.FileInfo, key string, err error) {
	token, err := tokenOf(text)
	if err != nil {
		return nil, "", err
	}
	keys := make(map[string]*opabundle.KeyConfig, len(v.Keys))
	for id, k := range v.Keys {
		if keys[id], err = completeKey(k); err != nil {
			return nil, "", fmt.Errorf("key %q: %w", id, err)
		}
	}
	claimed, _, err := decodeClaims(token)
	if err != nil {
		return nil, "", err
	}
	id := v.KeyID
	if id == "" && len(keys) == 1 && claimed.KeyID == "" {
		id = slices.Collect(maps.Keys(keys))[0]
	}
	// The plugin that a bundle names is left out: an archive must not choose how
	// it is verified.
	only := opabundle.SignaturesConfig{Signatures: []string{token}}
	signed, err = opabundle.VerifyBundleSignature(only, opabundle.NewVerificationConfig(keys, id, v.Scope, nil))
	name := cmp.Or(id, claimed.KeyID)
	made, ok := keys[name]
	if err == nil {
		return signed, keyFingerprint(made), nil
	}
	// The unverified claims are not trusted, but suffice to explain the refusal.
	if !ok && len(keys) > 0 {
		return nil, "", UnknownKeyError{name, slices.Sorted(maps.Keys(keys))}
	}
	if ok && strings.Contains(err.Error(), "scope") {
		return nil, "", fmt.Errorf("it was made for the scope %q, and must be for %q", claimed.Scope, cmp.Or(v.Scope, made.Scope))
	}
	if ok {
		return nil, "", fmt.Errorf("it was not made with the key %q, or was changed since: %w", name, err)
	}
	return nil, "", err
}

// keyFingerprint is the SHA-256 of a key, independent of the format of its PEM; empty if there is none.
func keyFingerprint(k *opabundle.KeyConfig) string {
	if k == nil {
		return ""
	}
	text := []byte(k.Key)
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TrustsBundle reports whether a bundle that was verified before would be verified again, by the
// stored data of its signature. Without a Verification there is nothing to verify.
func (v *Verification) TrustsBundle(b *Bundle) bool {
	if v == nil {
		return true
	}
	s := b.Signature
	if s == nil {
		return !v.Required
	}
	if !s.Verified || s.Key == "" {
		return false
	}
	for id, k := range v.Keys {
		scope := cmp.Or(v.Scope, k.Scope)
		if keyFingerprint(k) == s.Key && (v.KeyID == "" || v.KeyID == id) && (scope == "" || scope == s.Scope) {
			return true
		}
	}
	return false
}

// WithUsableKeys returns a Verification without the keys that cannot be used: an error in one key does
// not revoke the signatures of another.
func (v *Verification) WithUsableKeys() *Verification {
	if v == nil {
		return nil
	}
	out := *v
	out.Keys = maps.Clone(v.Keys)
	maps.DeleteFunc(out.Keys, func(_ string, k *opabundle.KeyConfig) bool { _, err := completeKey(k); return err != nil })
	return &out
}

// Fingerprint is equal for Verifications that accept the same signatures; empty for none.
func (v *Verification) Fingerprint() string {
	if v == nil {
		return ""
	}
	lines := []string{fmt.Sprintf("%q %q %t", v.KeyID, v.Scope, v.Required)}
	for id, k := range v.Keys {
		lines = append(lines, fmt.Sprintf("%q %q %q %q", id, k.Algorithm, k.Scope, keyFingerprint(k)))
	}
	return hashLines(lines)
}

// pemBegin is what PEM begins with. A text that has it is not a secret, whether or not it can be read.
const pemBegin = "-----BEGIN"

// completeKey sets the algorithm of a key, and refuses one that is not for such a key: a public key
// that is used as a secret is known to everyone.
func completeKey(k *opabundle.KeyConfig) (*opabundle.KeyConfig, error) {
	if k == nil || k.Key == "" {
		return nil, errors.New("there is no key")
	}
	var public crypto.PublicKey
	block, _ := pem.Decode([]byte(k.Key))
	if block == nil && strings.Contains(k.Key, pemBegin) {
		return nil, errors.New("reading the public key: its PEM is damaged, or ends too early; openssl pkey -in PRIVATE -pubout writes a public key")
	}
	if block != nil {
		var err error
		if public, err = publicKey(block); err != nil {
			return nil, fmt.Errorf("reading the public key: %w", err)
		}
	} else if k.Algorithm == "" { // a public key in another format, such as DER, is no secret either
		return nil, AlgorithmError{errors.New("the key is not PEM; a secret needs an algorithm, such as HS256")}
	}
	allowed, err := keyAlgorithms(public)
	if err != nil {
		return nil, err
	}
	out := *k
	if out.Algorithm == "" {
		out.Algorithm = allowed[0]
	}
	if !slices.Contains(allowed, out.Algorithm) {
		return nil, AlgorithmError{fmt.Errorf("the algorithm is %s, and for a key like this it is one of %s", out.Algorithm, strings.Join(allowed, ", "))}
	}
	return &out, nil
}

// publicKey reports only that a block cannot be parsed. The errors of parsers
// describe bytes that the user did not type.
func publicKey(block *pem.Block) (key crypto.PublicKey, err error) {
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var c *x509.Certificate
		if c, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = c.PublicKey
		}
	default:
		return nil, fmt.Errorf("%s is no public key", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("the block %s is damaged or has something else in it; openssl pkey -in PRIVATE -pubout writes a public key", block.Type)
	}
	return key, nil
}

// ofSecrets returns the algorithms that sign with a secret.
func ofSecrets() []string { return []string{"HS256", "HS384", "HS512"} }

// keyAlgorithms lists the algorithms for a key, the usual one first; those for a secret if the key is
// nil.
func keyAlgorithms(key crypto.PublicKey) ([]string, error) {
	switch k := key.(type) {
	case nil:
		return ofSecrets(), nil
	case *rsa.PublicKey:
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, nil
	case ed25519.PublicKey:
		return []string{"EdDSA"}, nil
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return []string{"ES256"}, nil
		case 384:
			return []string{"ES384"}, nil
		case 521:
			return []string{"ES512"}, nil
		}
	}
	return nil, fmt.Errorf("there is no algorithm for a key like this (%T)", key)
}
