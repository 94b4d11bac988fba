// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/regatta-sh/regatta/charts/release/assets"
	"github.com/regatta-sh/regatta/charts/release/image"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/state"
	"github.com/regatta-sh/regatta/test/e2e/internet"
)

// A stranger has a cluster that is empty, the tools, and documents. The internet has the release. It is not Serial: nothing of it is on
// the cluster of the other specs, and it waits for most of two minutes.
var _ = Describe("a release", func() {
	It("is installed on an empty cluster by the command of the README as it stands", func(ctx SpecContext) {
		if shared.cluster == nil || !shared.real {
			Skip("pods need nodes that run them, and the image a registry")
		}
		install := readCommand("README.md", "```sh", "helm install")
		version := regexp.MustCompile(`--version (\S+)`).FindStringSubmatch(install)
		Expect(version).NotTo(BeNil(), install)
		Expect(readCommand("charts/kruise/README.md", "```bash", "helm install")).To(Equal(install))

		By("making the release and pushing it to a registry on localhost")
		hub := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
		localhost := httptest.NewServer(hub)
		DeferCleanup(localhost.Close)
		folder := filepath.Join(GinkgoT().TempDir(), "dist")
		pushRelease(ctx, "v"+version[1], folder, strings.TrimPrefix(localhost.URL, "http://"))

		By("starting a cluster, whose node finds the registry by the name of the image")
		cluster := startEmptyCluster(ctx)
		nodesPullFrom(ctx, cluster, "ghcr.io", hub)
		hosts, err := internet.Serve(map[string]http.Handler{
			"ghcr.io": hub, "github.com": http.StripPrefix("/regatta-sh/regatta/releases/download/v"+version[1]+"/", http.FileServer(http.Dir(folder))),
		}, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(hosts.Close)
		s := &stranger{ctx: ctx, home: GinkgoT().TempDir(), env: append(hosts.Env(cluster.State.APIServerHost()), "KUBECONFIG="+cluster.State.Kubeconfig())}
		DeferCleanup(func(ctx context.Context) {
			if CurrentSpecReport().Failed() {
				s.ctx = ctx
				for _, line := range []string{"kubectl get pods -A -o wide", "kubectl -n kruise-system get events", "kubectl -n kruise-system logs -l control-plane=controller-manager --tail=50"} {
					out, _ := s.try(line)
					AddReportEntry(line, out)
				}
			}
		})

		By("asking whether it can be installed, and installing it")
		s.types(fmt.Sprintf("tar -xzf %s regatta", filepath.Join(folder, fmt.Sprintf("regatta-v%s-linux-%s.tar.gz", version[1], runtime.GOARCH))))
		Expect(s.types("./regatta version")).To(ContainSubstring(runtime.GOARCH))
		s.types("./regatta check")
		s.types(install)
		s.types(readCommand("charts/kruise/README.md", "```bash", "kubectl -n kruise-system rollout status") + " --timeout=3m")
		s.types("kubectl -n kruise-system rollout status daemonset/kruise-daemon --timeout=2m")
		named, err := os.ReadFile(filepath.Join(folder, "image.digest"))
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(s.types("kubectl -n kruise-system get pods -o jsonpath='{.items[*].spec.containers[*].image}'"))).To(HaveEach(strings.TrimSpace(string(named))))

		s.types("./regatta check")
		s.types("helm test kruise --timeout 2m")
		s.types("./regatta support -f support.tar.gz")
		Expect(s.types("tar -tzf support.tar.gz")).To(ContainSubstring("manifest.txt"))

		By("using it")
		manifest := filepath.Join(s.home, "web.yaml")
		Expect(os.WriteFile(manifest, []byte(webOfTwo), 0o600)).To(Succeed())
		s.types("kubectl apply -f web.yaml")
		s.types("kubectl wait --for=jsonpath='{.status.updatedAvailableReplicas}'=2 cloneset/web --timeout=3m")
		s.types(readCommand("charts/README.md", "```bash", "helm repo add"))
		Expect(s.types("helm show chart regatta/kruise")).To(ContainSubstring("regatta.sh/image-digest: sha256:"))

		By("loading an archive of the image into the node, and moving to it without any registry")
		tag, err := name.NewTag("kruise-manager:dev")
		Expect(err).NotTo(HaveOccurred())
		Expect(buildOtherImage(ctx).WriteArchive(filepath.Join(s.home, "image.tar"), tag)).To(Succeed())
		load := regexp.MustCompile("containerd on a node \\| `([^`]+)`").FindStringSubmatch(readDocument("charts/README.md"))
		Expect(load).NotTo(BeNil())
		s.types(fmt.Sprintf("nsenter --target %d --mount --wdns=%s %s", findMachine(ctx, cluster), s.home, load[1]))
		moved := regexp.MustCompile("`(--set manager.image.repository=kruise-manager [^`]+)`").FindStringSubmatch(readDocument("charts/README.md"))
		Expect(moved).NotTo(BeNil())
		s.types(fmt.Sprintf("helm upgrade kruise %s --reset-then-reuse-values %s --set manager.imagePullPolicy=Never --set daemon.imagePullPolicy=Never --wait --timeout 3m", filepath.Join(shared.root, "charts/kruise"), moved[1]))
		s.types("kubectl -n kruise-system rollout status daemonset/kruise-daemon --timeout=2m")
		Expect(strings.Fields(s.types("kubectl -n kruise-system get pods --field-selector=status.phase=Running -o jsonpath='{.items[*].spec.containers[*].image}'"))).To(ContainElement("kruise-manager:dev"))
		s.types("./regatta check")
	}, SpecTimeout(9*time.Minute))
})

const webOfTwo = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "nginx:1.20"}]}
`

// findMachine returns the first process of the only node, which has the mounts of the node.
func findMachine(ctx context.Context, cluster *local.Cluster) int {
	GinkgoHelper()
	found := cluster.Status(ctx).Processes[state.RealNode(1)]
	Expect(found).To(HaveLen(1))
	return found[0]
}

func readDocument(file string) string {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(shared.root, file))
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// readCommand is the first line of a document, in blocks of a kind, that begins so.
func readCommand(file, block, prefix string) string {
	GinkgoHelper()
	for _, line := range commandsOf(readDocument(file), block) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	Fail(fmt.Sprintf("%s has no command %q", file, prefix))
	return ""
}

// pushRelease makes a release of the programs that were built for all specs.
func pushRelease(ctx context.Context, version, folder, registry string) {
	GinkgoHelper()
	here := []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}
	release, err := assets.WriteRelease(ctx, assets.Options{
		Source: shared.root, Version: version, Notes: "News.\n", Folder: folder, Origin: image.Origin{Revision: strings.Repeat("0", 40), Created: time.Unix(1_700_000_000, 0)},
		Platforms: here, Systems: here, Programs: image.ReleasePrograms(), CommandLine: image.CommandLine(), Helm: filepath.Join(shared.installed.Tools, "helm"), Report: report,
		Compile: useBuiltPrograms,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(release.PushRelease(ctx, registry, report)).To(Succeed())
}

// buildOtherImage builds the image at another time than the release: a kubelet does not run an image under a new name that it has pulled
// by another one, unless it may pull it by the new name, too.
func buildOtherImage(ctx context.Context) *image.Built {
	GinkgoHelper()
	origin := image.Origin{Revision: strings.Repeat("1", 40), Created: time.Unix(1_700_000_001, 0)}
	built, err := image.BuildWith(ctx, useBuiltPrograms, shared.root, image.ReleasePrograms(), []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, origin, report)
	Expect(err).NotTo(HaveOccurred())
	return built
}

// useBuiltPrograms implements image.Compiler with the programs that were built for all specs.
func useBuiltPrograms(_ context.Context, _ string, programs []image.Program, _ v1.Platform, _, _ string) ([]string, error) {
	paths := make([]string, len(programs))
	for i, program := range programs {
		paths[i] = shared.programs[program.Name]
	}
	return paths, nil
}

func report(step string) { fmt.Fprintln(GinkgoWriter, step) }

// startEmptyCluster starts a cluster beside that of the other specs.
func startEmptyCluster(ctx context.Context) *local.Cluster {
	GinkgoHelper()
	name := localCluster + "-empty"
	DeferCleanup(func(ctx context.Context) { Expect(local.Down(ctx, name, GinkgoWriter)).To(Succeed()) })
	Expect(local.Down(ctx, name, GinkgoWriter)).To(Succeed()) // of a run that was killed
	cluster, err := local.Up(ctx, local.Options{Name: name, Real: 1, Out: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	return cluster
}

// nodesPullFrom has the nodes of a cluster ask a registry for images of a host.
func nodesPullFrom(ctx context.Context, cluster *local.Cluster, host string, handler http.Handler) {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(cluster.State.APIServerHost(), "0"))
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	DeferCleanup(server.Close)
	address := "http://" + listener.Addr().String()
	for number := 1; number <= cluster.State.Real; number++ {
		folder := cluster.State.Path("nodes", state.RealNode(number), "certs.d", host)
		Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		text := fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", address, address)
		Expect(os.WriteFile(filepath.Join(folder, "hosts.toml"), []byte(text), 0o644)).To(Succeed())
	}
}

// stranger types commands in a folder that has nothing of the project.
type stranger struct {
	ctx  context.Context
	home string
	env  []string
}

func (s *stranger) try(line string) (string, error) {
	command := exec.CommandContext(s.ctx, "bash", "-euo", "pipefail", "-c", line)
	command.Dir = s.home
	command.Env = append([]string{"HOME=" + s.home, "PATH=" + shared.installed.Tools + ":/usr/bin:/bin"}, s.env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// types runs a command and returns what it prints.
func (s *stranger) types(line string) string {
	GinkgoHelper()
	By(line)
	out, err := s.try(line)
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, out)
	return out
}
