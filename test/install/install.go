// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/regatta-sh/regatta/charts/release/image"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/local"
)

// Image is what the chart runs unless told otherwise.
const Image = "ghcr.io/regatta-sh/regatta"

// Options say where Regatta goes.
type Options struct {
	Root     string
	Programs map[string]string // of Build
	// Cluster is a local cluster, nil for another one, which Kubeconfig and
	// Tools (a folder with kubectl and helm) describe then.
	Cluster    *local.Cluster
	Kubeconfig string
	Tools      string
	// Extra names programs beside kubectl and helm that Tools is to have, such as opa.
	Extra []string
	// Image and its tag, for a cluster that test/cluster did not start: the cluster must be able to pull it.
	Image string
	// Values are more arguments for helm, such as --set.
	Values []string
	// Arguments are more of a manager that runs beside the cluster, such as --feature-gates.
	Arguments []string
	// Webhooks is where the caller runs managers beside a cluster whose nodes are
	// all simulated, a URL; empty to have one run.
	Webhooks string
	Out      io.Writer
}

// Installed is Regatta on a cluster.
type Installed struct {
	Kubeconfig string
	Tools      string
	// User is who the manager is to the API server.
	User string
	// Endpoint is where a manager outside of the cluster explains decisions;
	// empty for one inside.
	Endpoint string
	// Registry is the cluster's own, HOST:PORT, which tests and the manager reach
	// without TLS; empty for a cluster that test/cluster did not start.
	Registry string
}

// Env is the environment that makes kubectl, helm and regatta use the cluster,
// with its registry in REGISTRY.
func (i Installed) Env(programs map[string]string) []string {
	path := i.Tools + ":" + filepath.Dir(programs["regatta"]) + ":" + os.Getenv("PATH")
	return append(os.Environ(), "KUBECONFIG="+i.Kubeconfig, "PATH="+path, "REGISTRY="+i.Registry)
}

// Install runs helm and waits until the manager is ready. On a cluster whose
// nodes are all simulated no pod runs, so the manager runs on this machine.
func Install(ctx context.Context, o Options) (Installed, error) {
	i := Installed{Kubeconfig: o.Kubeconfig, Tools: o.Tools, User: "system:serviceaccount:kruise-system:kruise-manager"}
	values := slices.Clone(o.Values)
	if o.Cluster != nil {
		i.Kubeconfig, i.Registry = o.Cluster.State.Kubeconfig(), o.Cluster.State.RegistryAddress()
	}
	if i.Tools == "" {
		var err error
		if i.Tools, err = Tools(ctx, o.Out, o.Extra...); err != nil {
			return i, err
		}
	}
	host := o.Cluster != nil && o.Cluster.State.Real == 0 && o.Webhooks == ""
	switch {
	case o.Webhooks != "":
		i.User = managerUser
		values = append(values, webhooksAt(o.Webhooks)...)
	case host:
		h, err := newHost(o)
		if err != nil {
			return i, err
		}
		i.Endpoint, i.User = h.endpoint(), managerUser
		values = append(values, h.values()...)
		if err := h.start(); err != nil {
			return i, err
		}
	case o.Cluster != nil:
		programs := []string{o.Programs["kruise-manager"], o.Programs["kruise-daemon"]}
		tag, err := tagOf(o.Root, programs...)
		if err != nil {
			return i, err
		}
		built, err := image.FromPrograms(ctx, programs, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, image.Origin{Version: tag})
		if err != nil {
			return i, err
		}
		if _, err := o.Cluster.Push(ctx, Image+":"+tag, built); err != nil {
			return i, err
		}
		// 200m, the documented limit, is for production; here people wait, unless the caller sets another one.
		values = slices.Concat([]string{"--set", "manager.resources.limits.cpu=2", "--set", "daemon.resources.limits.cpu=1"}, values, []string{"--set", "manager.image.tag=" + tag})
	case o.Image != "":
		repository, tag, err := reference(o.Image)
		if err != nil {
			return i, err
		}
		values = append(values, "--set", "manager.image.repository="+repository, "--set", "manager.image.tag="+tag)
	}
	args := append([]string{"upgrade", "--install", "kruise", filepath.Join(o.Root, "charts", "kruise"), "--wait", "--timeout", "3m"}, values...)
	if err := i.run(ctx, o, "helm", args...); err != nil {
		return i, err
	}
	if o.Webhooks != "" {
		return i, nil
	}
	if host {
		return i, waitReady(ctx, i, o)
	}
	return i, i.run(ctx, o, "kubectl", "-n", "kruise-system", "rollout", "status", "deployment/kruise-controller-manager", "--timeout=3m")
}

// Tools is a folder with kubectl, helm and the extra programs, which are built if need be.
func Tools(ctx context.Context, out io.Writer, extra ...string) (string, error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return "", err
	}
	paths, err := binaries.Ensure(ctx, cache, out, append([]string{"kubectl", "helm"}, extra...)...)
	if err != nil {
		return "", err
	}
	return binaries.Link(cache, paths)
}

func (i Installed) run(ctx context.Context, o Options, name string, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(i.Tools, name), args...)
	command.Env = i.Env(o.Programs)
	command.Dir = o.Root
	text, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s %s: %w\n%s", name, strings.Join(args, " "), err, text)
	}
	return nil
}

// reference is an image's repository, whose registry may have a port, and its
// tag, or its digest, which the chart takes for one.
func reference(image string) (repository, tag string, err error) {
	if repository, digest, ok := strings.Cut(image, "@"); ok {
		return repository, digest, nil
	}
	at := strings.LastIndex(image, ":")
	if at <= strings.LastIndex(image, "/") || at == len(image)-1 || at == 0 {
		return "", "", fmt.Errorf("image is %q, want it with its tag, such as %s:1.0.0", image, Image)
	}
	return image[:at], image[at+1:], nil
}

// tagOf is the version of the chart and what the program is: nodes that have an
// image of a tag do not pull it again.
func tagOf(root string, programs ...string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, "charts", "kruise", "Chart.yaml"))
	if err != nil {
		return "", fmt.Errorf("reading the chart: %w", err)
	}
	h := sha256.New()
	for _, program := range programs {
		if err := hash(h, program); err != nil {
			return "", err
		}
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if v, ok := strings.CutPrefix(line, "appVersion:"); ok {
			return fmt.Sprintf("%s-%x", strings.Trim(strings.TrimSpace(v), `"`), h.Sum(nil)[:4]), nil
		}
	}
	return "", fmt.Errorf("reading the chart: it has no appVersion")
}

func hash(into io.Writer, program string) error {
	f, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("reading the program: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(into, f); err != nil {
		return fmt.Errorf("reading the program: %w", err)
	}
	return nil
}
