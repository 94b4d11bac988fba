// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/regatta-sh/regatta/engine/document"
)

const signatureFile = ".signatures.json"

// Signature has the claims of a bundle's signature.
type Signature struct {
	KeyID     string `json:"keyID,omitempty"`
	Algorithm string `json:"algorithm"`
	Scope     string `json:"scope,omitempty"`
	Files     int    `json:"files"`
	// Verified is true if the signature was verified with keys, and is valid.
	Verified bool `json:"verified"`
	// Key is the SHA-256, in hexadecimal, of the key that verified it.
	Key string `json:"-"`
}

// Signing says how a bundle is signed.
type Signing struct {
	// Key is a private key in PEM or a secret, or the name of a file that has either, as in OPA.
	Key string
	// Algorithm is derived from a private key if it is empty; a secret requires one.
	Algorithm string
	// KeyID and Scope are written into the signature if they are not empty.
	KeyID, Scope string
}

// SignArchive writes an archive again, with a signature over every file of it. An existing signature
// is replaced.
func SignArchive(w io.Writer, from io.Reader, with Signing) error {
	files, err := unpackArchive("the archive", from)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	delete(files, signatureFile)
	if files[signatureFile], err = SignFiles(files, with); err != nil {
		return err
	}
	return packArchive(w, files)
}

// SignFiles returns a signature over all files, as the text of the file that OPA keeps it in.
func SignFiles(files map[string]string, with Signing) (string, error) {
	token, err := with.signToken(files)
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	text, err := json.MarshalIndent(opabundle.SignaturesConfig{Signatures: []string{token}}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("signing: %w", err)
	}
	return string(text) + "\n", nil
}

func (s Signing) signToken(files map[string]string) (string, error) {
	infos, err := hashFiles(files)
	if err != nil {
		return "", err
	}
	algorithm, err := s.resolveAlgorithm()
	if err != nil {
		return "", err
	}
	config := opabundle.NewSigningConfig(s.Key, algorithm, "")
	if s.Scope != "" {
		// OPA reads claims from files only.
		claims, err := json.Marshal(map[string]string{"scope": s.Scope})
		if err != nil {
			return "", err
		}
		f, err := os.CreateTemp("", "claims-*.json")
		if err != nil {
			return "", fmt.Errorf("writing claims: %w", err)
		}
		defer os.Remove(f.Name())
		_, err = f.Write(claims)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("writing claims: %w", err)
		}
		config.ClaimsPath = f.Name()
	}
	return opabundle.GenerateSignedToken(infos, config, s.KeyID)
}

// resolveAlgorithm returns the usual algorithm for a private key, and refuses one that is not for such
// a key.
func (s Signing) resolveAlgorithm() (string, error) {
	text, err := s.readKey()
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(text)
	if slices.Contains(ofSecrets(), s.Algorithm) {
		if block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return "", AlgorithmError{fmt.Errorf("%s signs with a secret, and the key is a %s", s.Algorithm, block.Type)}
		}
		return s.Algorithm, nil
	}
	switch {
	case block == nil && s.Algorithm == "":
		return "", fmt.Errorf("reading the private key: it is not PEM; a secret needs an algorithm, such as HS256")
	case block == nil:
		return "", AlgorithmError{fmt.Errorf("%s signs with a private key in PEM, and the key is none", s.Algorithm)}
	case block.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return "", errors.New("reading the private key: it has a password; openssl pkey -in KEY -out PLAIN takes it away")
	case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return "", fmt.Errorf("reading the private key: the file begins with a block %s, which is none", block.Type)
	}
	key, err := opabundle.NewSigningConfig(s.Key, "", "").GetPrivateKey()
	if err != nil {
		return "", fmt.Errorf("reading the private key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return "", fmt.Errorf("reading the private key: %T does not sign", key)
	}
	allowed, err := keyAlgorithms(signer.Public())
	if err != nil {
		return "", err
	}
	if s.Algorithm == "" {
		return allowed[0], nil
	}
	if !slices.Contains(allowed, s.Algorithm) {
		return "", AlgorithmError{fmt.Errorf("the algorithm is %s, and for a key like this it is one of %s", s.Algorithm, strings.Join(allowed, ", "))}
	}
	return s.Algorithm, nil
}

// readKey returns the key, from a file or from the field itself.
func (s Signing) readKey() ([]byte, error) {
	text, err := []byte(s.Key), error(nil)
	var unread *fs.PathError
	if !strings.HasPrefix(s.Key, "-----BEGIN") {
		if text, err = os.ReadFile(s.Key); errors.Is(err, fs.ErrNotExist) {
			text, err = []byte(s.Key), nil
		}
	}
	switch {
	case errors.As(err, &unread) && !errors.Is(err, fs.ErrPermission): // the text may be a secret, and is not repeated
		return nil, fmt.Errorf("reading the key: it names no file that can be read: %w; write a secret like this to a file, and give the name of that", unread.Err)
	case err != nil:
		return nil, fmt.Errorf("reading the key: %w", err)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, errors.New("reading the key: it is empty")
	}
	return text, nil
}

// AlgorithmError refuses an algorithm that is not for the key.
type AlgorithmError struct{ Err error }

func (e AlgorithmError) Error() string { return e.Err.Error() }
func (e AlgorithmError) Unwrap() error { return e.Err }

// hashFiles hashes files as OPA does: data and the manifest by their decoded contents, all others byte
// by byte.
func hashFiles(files map[string]string) ([]opabundle.FileInfo, error) {
	hasher, err := opabundle.NewSignatureHasher(opabundle.SHA256)
	if err != nil {
		return nil, err
	}
	var out []opabundle.FileInfo
	for _, p := range slices.Sorted(maps.Keys(files)) {
		var content any = []byte(files[p])
		if opabundle.IsStructuredDoc(p) {
			if err := util.Unmarshal([]byte(files[p]), &content); err != nil {
				return nil, fmt.Errorf("reading %s: %w", p, err)
			}
		}
		sum, err := hasher.HashFile(content)
		if err != nil {
			return nil, fmt.Errorf("hashing %s: %w", p, err)
		}
		out = append(out, opabundle.NewFile(p, hex.EncodeToString(sum), opabundle.SHA256.String()))
	}
	return out, nil
}

// signatureOf reads the claims of a signature, and does not verify it.
func signatureOf(files map[string]string) (*Signature, error) {
	text, ok := files[signatureFile]
	if !ok {
		return nil, nil
	}
	wrong := func(err error) error { return SignatureError{signatureFile, err} }
	token, err := tokenOf(text)
	if err != nil {
		return nil, wrong(err)
	}
	said, algorithm, err := decodeClaims(token)
	if err != nil {
		return nil, wrong(err)
	}
	return &Signature{KeyID: said.KeyID, Algorithm: algorithm, Scope: said.Scope, Files: len(said.Files)}, nil
}

func tokenOf(text string) (string, error) {
	var sc opabundle.SignaturesConfig
	if err := json.Unmarshal([]byte(text), &sc); err != nil {
		return "", fmt.Errorf("reading the signature: %w", document.ExplainError([]byte(text), err))
	}
	if len(sc.Signatures) != 1 {
		return "", fmt.Errorf("there are %d signatures, and there must be one", len(sc.Signatures))
	}
	return sc.Signatures[0], nil
}

// decodeClaims decodes the claims of a token; its key id may be in the header instead.
func decodeClaims(token string) (said opabundle.DecodedSignature, algorithm string, err error) {
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return said, "", errors.New("the signature is no JWT")
	}
	for i, to := range []any{&header, &said} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.NewDecoder(bytes.NewReader(text)).Decode(to)
		}
		if err != nil {
			return said, "", fmt.Errorf("the signature is no JWT: %w", err)
		}
	}
	if header.KeyID != "" {
		said.KeyID = header.KeyID
	}
	return said, header.Algorithm, nil
}
