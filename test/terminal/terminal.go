// SPDX-License-Identifier: Apache-2.0

// Package terminal has a user who types commands that change objects, for tests with an API server.
package terminal

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// Terminal is a user and a cluster. The requests of the commands pass through it.
type Terminal struct {
	client.Client

	mu       sync.Mutex
	requests []string
	before   func(*http.Request)
}

// NewTerminal makes a terminal with a cluster that is the test's own until it ends. The environment of the process
// names the cluster.
func NewTerminal(t *testing.T, api *apiserver.Shared) *Terminal {
	t.Helper()
	env, c := api.Serve(t)
	terminal := &Terminal{Client: c}
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	if host.Host == "" {
		host = &url.URL{Scheme: "https", Host: env.Config.Host}
	}
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		terminal.handleRequest(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], "+
		"contexts: [{name: c, context: {cluster: c, namespace: default}}], current-context: c}", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	return terminal
}

func (s *Terminal) handleRequest(r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
}

// BeforeRequests has a function called with each request of a command before the API server gets it, until the
// test ends.
func (s *Terminal) BeforeRequests(t *testing.T, before func(*http.Request)) {
	set := func(before func(*http.Request)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.before = before
	}
	set(before)
	t.Cleanup(func() { set(nil) })
}

// Result is what came of a command.
type Result struct {
	// Out is the output.
	Out string
	// Err is what was printed to the standard error, and then the error.
	Err string
	// Code is the exit code.
	Code int
	// Requests are those that the command sent, such as "GET /api/v1/namespaces/default/pods/a".
	Requests []string
}

// TypeCommand runs a command with arguments that do not contain its name.
func (s *Terminal) TypeCommand(t *testing.T, command *cobra.Command, args ...string) Result {
	t.Helper()
	root := &cobra.Command{Use: "regatta", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(command)
	var out, failed bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&failed)
	root.SetArgs(append([]string{command.Name()}, args...))
	s.mu.Lock()
	s.requests = nil
	s.mu.Unlock()
	err := exit.WithExitCodes(root).ExecuteContext(t.Context())
	if err != nil {
		failed.WriteString(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Result{out.String(), failed.String(), exit.Code(err), s.requests}
}

// CreateObjects makes objects that are written as YAML, and deletes them when the test ends.
func (s *Terminal) CreateObjects(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		object := ParseObject(t, text)
		if err := s.Create(t.Context(), object); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		t.Cleanup(func() {
			if err := s.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
}

// ParseObject reads an object in YAML.
func ParseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = object.UnmarshalJSON(raw) // keeps integers
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

// ReadObject returns the object of the cluster that has the apiVersion, the kind, the namespace and the name of a text.
func (s *Terminal) ReadObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := ParseObject(t, text)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// ReadField returns a field of the object of ReadObject as YAML, such as spec.replicas.
func (s *Terminal) ReadField(t *testing.T, text, path string) string {
	t.Helper()
	value, _, err := unstructured.NestedFieldCopy(s.ReadObject(t, text).Object, strings.Split(path, ".")...)
	if err != nil {
		t.Fatal(err)
	}
	field, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(field)
}
