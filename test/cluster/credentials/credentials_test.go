// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestServerCertificateIsOfTheAuthority(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if err := WriteCertificates(dir, now, "127.0.0.1", "10.88.0.1"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, ServerFile), filepath.Join(dir, ServerKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	for _, name := range []string{"10.88.0.1", "127.0.0.1", "kubernetes.default.svc", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "10.99.0.1", CurrentTime: now}); err == nil {
		t.Error("it is valid for any address")
	}
}

// Who has a certificate of the authority that is for the front proxy alone is taken at its word.
func TestTheFrontProxyHasAnAuthorityOfItsOwn(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if err := WriteCertificates(dir, now); err != nil {
		t.Fatal(err)
	}
	flags := FrontProxyFlags(dir)
	pair, err := tls.LoadX509KeyPair(flags["proxy-client-cert-file"], flags["proxy-client-key-file"])
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{flags["requestheader-client-ca-file"]: true, filepath.Join(dir, AuthorityFile): false} {
		authority, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != want || pair.Leaf.Subject.CommonName != flags["requestheader-allowed-names"] {
			t.Errorf("%s of %s: %v", pair.Leaf.Subject, filepath.Base(file), err)
		}
	}
}

func TestEveryUserHasATokenAndAFileOfItsOwn(t *testing.T) {
	users := Users("node-1", "node-2")
	tokens, files := map[string]bool{}, map[string]bool{}
	for _, user := range users {
		tokens[user.Token], files[user.FileName()] = true, true
		if strings.ContainsAny(user.FileName(), ":/") {
			t.Errorf("%s has the file name %s", user.Name, user.FileName())
		}
	}
	if len(tokens) != len(users) || len(files) != len(users) {
		t.Errorf("%d users have %d tokens and %d files", len(users), len(tokens), len(files))
	}
	path := filepath.Join(t.TempDir(), "tokens.csv")
	if err := WriteTokens(path, []User{{Name: "a", Groups: []string{"x", "y"}, Token: "t"}, {Name: "b", Token: "u"}}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "t,a,uid-a,\"x,y\"\nu,b,uid-b,\n"; string(written) != want {
		t.Errorf("got %q, want %q", written, want)
	}
}

func TestMergeKeepsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "config")
	theirs := clientcmdapi.NewConfig()
	theirs.Clusters["prod"] = &clientcmdapi.Cluster{Server: "https://prod"}
	theirs.Contexts["prod"] = &clientcmdapi.Context{Cluster: "prod"}
	theirs.CurrentContext = "prod"
	if err := WriteKubeconfig(path, theirs); err != nil {
		t.Fatal(err)
	}
	ours := Kubeconfig("h1", "https://127.0.0.1:1", []byte("ca"), User{Name: Admin, Token: "t"})
	if err := Merge(path, ours); err != nil {
		t.Fatal(err)
	}
	merged, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Clusters) != 2 || merged.CurrentContext != "regatta-h1" {
		t.Errorf("after merging: %v, %s", merged.Clusters, merged.CurrentContext)
	}
	if err := Unmerge(path, "h1"); err != nil {
		t.Fatal(err)
	}
	left, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(left.Clusters) != 1 || left.Clusters["prod"] == nil || len(left.AuthInfos) != 0 {
		t.Errorf("after taking it out: %v, %v", left.Clusters, left.AuthInfos)
	}
}

func TestUnmergeRemovesAFileOfOnlyOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := Merge(path, Kubeconfig("h1", "https://127.0.0.1:1", nil, User{Token: "t"})); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, there is nothing to do
		if err := Unmerge(path, "h1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}
