// SPDX-License-Identifier: Apache-2.0

package create

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// runCreate types regatta create, and returns what it prints, its error and its exit code.
func runCreate(t *testing.T, kubeconfig string, args ...string) (printed, message string, code int) {
	t.Helper()
	root := &cobra.Command{Use: "regatta", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(NewCommand())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	t.Setenv("KUBECONFIG", kubeconfig)
	root.SetArgs(append([]string{"create"}, args...))
	err := exit.WithExitCodes(root).ExecuteContext(t.Context())
	if err != nil {
		message = err.Error()
	}
	return out.String(), message, exit.Code(err)
}

// noCluster is a kubeconfig that names no cluster.
func noCluster(t *testing.T) string { return filepath.Join(t.TempDir(), "kubeconfig") }

// manifests are commands, and what they print with --dry-run=client -o yaml. They do not need a cluster.
var manifests = map[string]struct {
	args string
	want string
}{
	"a request with a name": {"crr restart-web --pod web-0 --containers app", `
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata:
  name: restart-web
spec:
  containers:
  - name: app
  podName: web-0
`},
	"a request with all flags": {"containerrecreaterequest all --pod web-0 --containers log,app --ordered-recreate " +
		"--unready-grace-period-seconds 5 --termination-grace-period-seconds 0 --min-started-seconds 7 " +
		"--failure-policy Ignore --active-deadline-seconds 3 --ttl-seconds-after-finished 0", `
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata:
  name: all
spec:
  activeDeadlineSeconds: 3
  containers:
  - name: log
  - name: app
  podName: web-0
  strategy:
    failurePolicy: Ignore
    minStartedSeconds: 7
    orderedRecreate: true
    terminationGracePeriodSeconds: 0
    unreadyGracePeriodSeconds: 5
  ttlSecondsAfterFinished: 0
`},
	"a BroadcastJob": {"bcj clean --image busybox", `
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata:
  name: clean
spec:
  template:
    spec:
      containers:
      - image: busybox
        name: clean
      restartPolicy: Never
`},
	"a BroadcastJob with all flags": {"broadcastjob clean-all " +
		"--image registry.example.com:5000/busybox:1@sha256:" + strings.Repeat("a", 64) + " " +
		"--node-selector disk=ssd,x.io/empty= --node-selector zone=a --parallelism 20% --restart OnFailure " +
		"--completion Always --ttl-seconds-after-finished 60 -- sh -c 'rm -rf /tmp/*' -- x", `
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata:
  name: clean-all
spec:
  completionPolicy:
    ttlSecondsAfterFinished: 60
    type: Always
  parallelism: 20%
  template:
    spec:
      containers:
      - command:
        - sh
        - -c
        - rm -rf /tmp/*
        - --
        - x
        image: registry.example.com:5000/busybox:1@sha256:` + strings.Repeat("a", 64) + `
        name: clean-all
      nodeSelector:
        disk: ssd
        x.io/empty: ""
        zone: a
      restartPolicy: OnFailure
`},
	"an AdvancedCronJob": {"cronjob backup --image backup:1 --schedule '0 3 * * *'", `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata:
  name: backup
spec:
  schedule: 0 3 * * *
  template:
    jobTemplate:
      spec:
        template:
          spec:
            containers:
            - image: backup:1
              name: backup
            restartPolicy: OnFailure
`},
	"an AdvancedCronJob with all flags": {"acj clean-often --image busybox --schedule @hourly --time-zone Europe/Berlin --broadcast " +
		"--concurrency-policy Forbid --restart OnFailure -- true", `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata:
  name: clean-often
spec:
  concurrencyPolicy: Forbid
  schedule: '@hourly'
  template:
    broadcastJobTemplate:
      spec:
        template:
          spec:
            containers:
            - command:
              - "true"
              image: busybox
              name: clean-often
            restartPolicy: OnFailure
  timeZone: Europe/Berlin
`},
	"an AdvancedCronJob of BroadcastJobs": {"advancedcronjob " + strings.Repeat("a", 52) + " --image busybox --schedule @daily --broadcast", `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata:
  name: ` + strings.Repeat("a", 52) + `
spec:
  schedule: '@daily'
  template:
    broadcastJobTemplate:
      spec:
        template:
          spec:
            containers:
            - image: busybox
              name: ` + strings.Repeat("a", 52) + `
            restartPolicy: Never
`},
	"an ImagePullJob": {"ipj web.2 --image web:2", `
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata:
  name: web.2
spec:
  completionPolicy: {}
  image: web:2
`},
	"an ImagePullJob with labels of nodes": {"imagepulljob by-labels --image web:2 --node-selector 'disk=ssd,zone in (b,a),!old' --parallelism 0 " +
		"--pull-policy Always --pull-secrets one,two --backoff-limit 0 --timeout-seconds 30 " +
		"--active-deadline-seconds 30 --ttl-seconds-after-finished 9 --completion Always -n default", `
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata:
  name: by-labels
  namespace: default
spec:
  completionPolicy:
    activeDeadlineSeconds: 30
    ttlSecondsAfterFinished: 9
    type: Always
  image: web:2
  imagePullPolicy: Always
  parallelism: 0
  pullPolicy:
    backoffLimit: 0
    timeoutSeconds: 30
  pullSecrets:
  - one
  - two
  selector:
    matchExpressions:
    - key: old
      operator: DoesNotExist
    - key: zone
      operator: In
      values:
      - a
      - b
    matchLabels:
      disk: ssd
`},
	"an ImagePullJob with names of nodes": {"ipj by-names --image web:2 --nodes a,b.example.com --nodes c --completion Never", `
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata:
  name: by-names
spec:
  completionPolicy:
    type: Never
  image: web:2
  selector:
    names:
    - a
    - b.example.com
    - c
`},
	"an ImagePullJob with labels of pods": {"ipj by-pods --image web:2 --pod-selector app=web", `
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata:
  name: by-pods
spec:
  completionPolicy: {}
  image: web:2
  podSelector:
    matchLabels:
      app: web
`},
	"a SidecarSet": {"sidecarset proxy --selector app=web " +
		"--image registry.example.com:5000/team/envoy:1@sha256:" + strings.Repeat("b", 64), `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata:
  name: proxy
spec:
  containers:
  - image: registry.example.com:5000/team/envoy:1@sha256:` + strings.Repeat("b", 64) + `
    name: envoy
  selector:
    matchLabels:
      app: web
`},
	"a SidecarSet with all flags": {"sidecarset agents --selector app=db --image log=fluentd:1 --image localhost:5000/stats " +
		"--in-namespace shop --inject-policy AfterAppContainer --max-unavailable 20% --partition 2 --paused", `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata:
  name: agents
spec:
  containers:
  - image: fluentd:1
    name: log
    podInjectPolicy: AfterAppContainer
  - image: localhost:5000/stats
    name: stats
    podInjectPolicy: AfterAppContainer
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: shop
  selector:
    matchLabels:
      app: db
  updateStrategy:
    maxUnavailable: 20%
    partition: 2
    paused: true
`},
	"a SidecarSet with an init container": {"sidecarset wait --selector tier=front --namespace-selector 'team notin (a)' --init --image busybox " +
		"--partition 100% --max-unavailable 0 -- sleep 1", `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata:
  name: wait
spec:
  initContainers:
  - command:
    - sleep
    - "1"
    image: busybox
    name: busybox
  namespaceSelector:
    matchExpressions:
    - key: team
      operator: NotIn
      values:
      - a
  selector:
    matchLabels:
      tier: front
  updateStrategy:
    maxUnavailable: 0
    partition: 100%
`},
}

// asClientDryRun adds flags in front of a command's own arguments, which may end with -- COMMAND.
func asClientDryRun(command, output string) []string {
	args := splitWords(command)
	return slices.Concat(args[:1], []string{"--dry-run=client", "-o", output}, args[1:])
}

func TestAManifestHasWhatTheFlagsSayAndNothingElse(t *testing.T) {
	for name, tc := range manifests {
		t.Run(name, func(t *testing.T) {
			printed, message, code := runCreate(t, noCluster(t), asClientDryRun(tc.args, "yaml")...)
			if want := strings.TrimPrefix(tc.want, "\n"); printed != want || message != "" || code != exit.Fine {
				t.Errorf("it printed\n%s\nand ended with %d %s, want\n%s", printed, code, message, want)
			}
		})
	}
}

func TestADryRunOfTheClientPrintsTheNameAndNeedsNoCluster(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"crr web --pod web-0 --containers app --dry-run=client", "containerrecreaterequest.apps.kruise.io/web created (dry run)\n"},
		{"crr --pod web-0 --containers app --dry-run=client", "containerrecreaterequest.apps.kruise.io/<unknown> created (dry run)\n"},
		{"sidecarset web --selector a=b --image x --dry-run=client", "sidecarset.apps.kruise.io/web created (dry run)\n"},
		{"cronjob web --schedule @daily --image x --dry-run=client -o name", "advancedcronjob.apps.kruise.io/web\n"},
		{"crr --pod web-0 --containers app --dry-run=client -o json", `{
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "ContainerRecreateRequest",
    "metadata": {
        "generateName": "web-0-"
    },
    "spec": {
        "containers": [
            {
                "name": "app"
            }
        ],
        "podName": "web-0"
    }
}
`},
		{"ipj web --image x --dry-run=client -o jsonpath={.spec.image}", "x"},
	} {
		printed, message, code := runCreate(t, noCluster(t), strings.Fields(tc.args)...)
		if printed != tc.want || code != exit.Fine {
			t.Errorf("%s printed %q and ended with %d %s, want %q", tc.args, printed, code, message, tc.want)
		}
	}
}

func TestAMistypedCommandIsRefusedBeforeTheClusterIsAsked(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, tc := range []struct{ args, want string }{
		{"crr", "--pod is missing: name the pod whose containers restart"},
		{"crr a b --pod web", "want one NAME, got 2 arguments; it is regatta create crr [NAME] --pod POD [flags]"},
		{
			"crr --pod web -- sh",
			"objects of kind ContainerRecreateRequest have no command; it is regatta create crr [NAME] --pod POD [flags]",
		},
		{"crr pod/web --pod web", `NAME is "pod/web": a lowercase RFC 1123 subdomain`},
		{"crr --pod pod/web", `--pod is "pod/web": a lowercase RFC 1123 subdomain`},
		{"crr --pod web --containers", "flag needs an argument: --containers"},
		{"crr --pod web --containers=", `--containers is "": "" is no name: a lowercase RFC 1123 label`},
		{"crr --pod a --containers x,x", `--containers is "x,x": "x" is given twice`},
		{"crr --pod a --containers x --containers x", `--containers is "x": "x" is given twice`},
		{"crr --pod a --containers a/b", `--containers is "a/b": "a/b" is no name: a lowercase RFC 1123 label`},
		{"crr --pod a --failure-policy fail", `--failure-policy is "fail": it must be Fail or Ignore`},
		{
			"crr --pod a --active-deadline-seconds 2",
			`--active-deadline-seconds is "2": it must be an integer, 3 or more`,
		},
		{
			"crr --pod a --unready-grace-period-seconds -1",
			`--unready-grace-period-seconds is "-1": it must be an integer, 0 or more`,
		},
		{
			"crr --pod a --termination-grace-period-seconds 1s",
			`--termination-grace-period-seconds is "1s": it must be an integer, 0 or more`,
		},
		{"crr --pod a --min-started-seconds 2147483648", `--min-started-seconds is "2147483648": it is too large`},
		{
			"crr --pod a --active-deadline-seconds 9223372036854775808",
			`--active-deadline-seconds is "9223372036854775808": it is too large`,
		},
		{
			"crr --pod a --active-deadline-seconds -9223372036854775809",
			`--active-deadline-seconds is "-9223372036854775809": it must be an integer, 3 or more`,
		},
		{"crr --pod a -n a/b", `--namespace is "a/b": a lowercase RFC 1123 label`},
		{
			"crr --pod a --dry-run",
			`--dry-run is "unchanged"; want --dry-run=client, --dry-run=server or --dry-run=none`,
		},
		{"crr --pod a -o toml", `unable to match a printer suitable for the output format "toml"`},
		{
			"bcj --image x",
			"NAME is missing; it is regatta create broadcastjob NAME (--image IMAGE | --from acj/NAME) [flags] [-- COMMAND [ARGS...]]",
		},
		{"bcj --image x -- sh", "NAME is missing; it is"},
		{"bcj a b --image x", "want one NAME, got 2 arguments; write a command after --; it is"},
		{"bcj a", "--image or --from is missing: name the image of the container, or an AdvancedCronJob to copy"},
		{"bcj a.b --image x", `NAME is "a.b": must not contain dots`},
		{"bcj " + long + " --image x", `NAME is "` + long + `": must be no more than 63`},
		{"bcj a --image=", `--image is "": it must be an image, such as nginx:1.27, without spaces`},
		{
			"bcj a --image X",
			`--image is "X": it must be an image, such as nginx:1.27: invalid reference format: repository name (library/X) must be lowercase`,
		},
		{
			"bcj a --image x --parallelism 101%",
			`--parallelism is "101%": it must be an integer, 0 or more, or a percentage from 0% to 100%`,
		},
		{"bcj a --image x --parallelism -1%", `--parallelism is "-1%": it must be`},
		{"bcj a --image x --parallelism -1", `--parallelism is "-1": it must be`},
		{"bcj a --image x --parallelism 1.5%", `--parallelism is "1.5%": it must be`},
		{"bcj a --image x --parallelism 2147483648", `--parallelism is "2147483648": it must be`},
		{"bcj a --image x --restart Always", `--restart is "Always": it must be Never or OnFailure`},
		{
			"bcj a --image x --completion Never --ttl-seconds-after-finished 1",
			"--ttl-seconds-after-finished and --completion Never exclude each other: the job never ends",
		},
		{
			"bcj a --image x --node-selector disk",
			`--node-selector is "disk": it must be labels with their values, such as disk=ssd,zone=a`,
		},
		{"bcj a --image x --node-selector disk=a/b", `--node-selector is "disk=a/b": `},
		{
			"bcj a --image x --node-selector a=1 --node-selector a=2",
			`--node-selector is "a=2": it gives one label several values; no object has all of them`,
		},
		{"bcj a --from x", `--from is "x": it must be acj/NAME, which names an AdvancedCronJob`},
		{"bcj a --from cronjob/x", `--from is "cronjob/x": it must be acj/NAME, which names an AdvancedCronJob`},
		{"bcj a --from acj/", `--from is "acj/": a lowercase RFC 1123 subdomain`},
		{"bcj a --from acj/x/y", `--from is "acj/x/y": a lowercase RFC 1123 subdomain`},
		{
			"bcj a --from acj/x --image y --parallelism 1 -- sh",
			"--from copies the job as it is: leave out --image, --parallelism, COMMAND",
		},
		{"cronjob a --image x", `--schedule is missing: give one such as "0 3 * * *" or @daily`},
		{"cronjob a --schedule @daily", "--image is missing: name the image of the container"},
		{
			"cronjob a --schedule @daily --image x --time-zone=",
			`--time-zone is "": it must be the name of a zone, such as Europe/Berlin`,
		},
		{"cronjob a --schedule @daily --image x --time-zone Local", `--time-zone is "Local": it must be`},
		{
			"cronjob a --schedule TZ=UTC --image x --time-zone UTC",
			`--time-zone and a zone in --schedule exclude each other: --schedule is "TZ=UTC"`,
		},
		{
			"cronjob a --schedule @daily --image x --concurrency-policy Stop",
			`--concurrency-policy is "Stop": it must be Allow, Forbid or Replace`,
		},
		{
			"cronjob " + long[:53] + " --image x",
			`NAME is "` + long[:53] + `": it must be no more than 52 characters: the names of jobs are longer`,
		},
		{"ipj a", "--image is missing: name the image that the nodes pull"},
		{"ipj a --image x -- sh", "objects of kind ImagePullJob have no command"},
		{
			"ipj a --image x --parallelism 50%",
			`--parallelism is "50%": it must be an integer, 0 or more; an ImagePullJob takes no percentage`,
		},
		{
			"ipj a --image x --nodes a --node-selector a=b",
			"--node-selector, --nodes and --pod-selector exclude each other",
		},
		{
			"ipj a --image x --nodes a --pod-selector a=b",
			"--node-selector, --nodes and --pod-selector exclude each other",
		},
		{
			"ipj a --image x --pod-selector=",
			`--pod-selector is "": it would select everything; give labels, such as app=web`,
		},
		{
			"ipj a --image x --node-selector a=b,",
			`--node-selector is "a=b,": found '', expected: identifier after ','`,
		},
		{"ipj a --image x --node-selector a>1", `--node-selector is "a>1": "gt" isn't supported in label selectors`},
		{"ipj a --image x --pull-policy Never", `--pull-policy is "Never": it must be Always or IfNotPresent`},
		{"ipj a --image x --pull-secrets A", `--pull-secrets is "A": "A" is no name: a lowercase RFC 1123 subdomain`},
		{
			"ipj a --image x --completion Never --active-deadline-seconds 700",
			"--active-deadline-seconds and --completion Never exclude each other: the job never ends",
		},
		{
			"ipj a --image x --active-deadline-seconds 599",
			"--active-deadline-seconds is 599: it must be 600 or more, the time of one try, which --timeout-seconds sets",
		},
		{
			"ipj a --image x --active-deadline-seconds 5 --timeout-seconds 6",
			"--active-deadline-seconds is 5: it must be 6 or more",
		},
		{
			"sidecarset a --image x",
			"--selector is missing: give labels of the pods that get the containers, such as app=web",
		},
		{"sidecarset a --selector a=b", "--image is missing: name the image of a container"},
		{
			"sidecarset a --selector a=b --image x -n shop",
			"unknown shorthand flag: 'n' in -n; regatta create sidecarset --help lists them",
		},
		{
			"sidecarset a --selector a!=b --image x",
			`--selector is "a!=b": it has an operator != that the field does not have; write a notin (VALUE)`,
		},
		{
			"sidecarset a --selector a=b --image x --image y/x",
			`--image is "y/x": there are two containers "x"; write CONTAINER=IMAGE to name them`,
		},
		{
			"sidecarset a --selector a=b --image my_x",
			`--image is "my_x": "my_x" is no name of a container; write CONTAINER=IMAGE: a lowercase RFC 1123 label`,
		},
		{
			"sidecarset a --selector a=b --image =x",
			`--image is "=x": "" is no name of a container; write CONTAINER=IMAGE: a lowercase RFC 1123 label`,
		},
		{
			"sidecarset a --selector a=b --image x=",
			`--image is "x=": it must be an image, such as nginx:1.27, without spaces`,
		},
		{
			"sidecarset a --selector a=b --image x --image y -- sh",
			"COMMAND goes with one --image: it is not clear which container gets it",
		},
		{
			"sidecarset a --selector a=b --image x --in-namespace A",
			`--in-namespace is "A": a lowercase RFC 1123 label`,
		},
		{
			"sidecarset a --selector a=b --image x --in-namespace a --namespace-selector a",
			"--namespace-selector and --in-namespace exclude each other",
		},
		{"sidecarset a --selector a=b --image x --partition 5%%", `--partition is "5%%": it must be`},
		{"sidecarset a --selector a=b --image x --max-unavailable all", `--max-unavailable is "all": it must be`},
		{
			"sidecarset a --selector a=b --image x --inject-policy First",
			`--inject-policy is "First": it must be BeforeAppContainer or AfterAppContainer`,
		},
		{"sidecarsets", `unknown command "sidecarsets" for "regatta create"; did you mean sidecarset?`},
	} {
		printed, message, code := runCreate(t, noCluster(t), strings.Fields(tc.args)...)
		if !strings.HasPrefix(message, tc.want) || code != exit.Usage || printed != "" {
			t.Errorf("create %s printed %q and ended with %d %s\nwant %s", tc.args, printed, code, message, tc.want)
		}
	}
	want := `--image is "busy box": it must be an image, such as nginx:1.27, without spaces`
	if _, message, code := runCreate(t, noCluster(t), "ipj", "a", "--image", "busy box"); code != exit.Usage || message != want {
		t.Errorf("an image with a space ended with %d %s", code, message)
	}
}

func TestACommandWithoutAClusterFails(t *testing.T) {
	for _, args := range []string{
		"bcj a --image x", "bcj a --from acj/x --dry-run=client", "crr --pod a --dry-run=client", "crr a --pod a --containers x",
	} {
		_, message, code := runCreate(t, noCluster(t), strings.Fields(args)...)
		if code != exit.Failed || !strings.HasPrefix(message, "finding the cluster: there is no kubeconfig") {
			t.Errorf("create %s ended with %d %s", args, code, message)
		}
	}
}

func TestCreateWithoutASubcommandPrintsHelp(t *testing.T) {
	printed, message, code := runCreate(t, noCluster(t))
	listed := strings.Contains(printed, "Available Commands:") && strings.Contains(printed, "regatta create crr --pod web-0")
	if code != exit.Fine || !listed {
		t.Errorf("it printed %q and ended with %d %s", printed, code, message)
	}
}

func TestEachSubcommandHasHelpWithExamplesThatWork(t *testing.T) {
	for _, cmd := range NewCommand().Commands() {
		if !strings.HasPrefix(cmd.Long, "Create a") {
			t.Errorf("%s --help begins with %q", cmd.Name(), cmd.Long)
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			if len(line) > 90 {
				t.Errorf("%s --help has a line that is too wide: %s", cmd.Name(), line)
			}
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			command, found := strings.CutPrefix(strings.TrimSpace(line), "regatta create ")
			if !found || strings.Contains(command, "--from") || strings.HasSuffix(command, "--pod web-0") {
				continue // a comment, or a command that reads a cluster
			}
			if _, message, code := runCreate(t, noCluster(t), asClientDryRun(command, "name")...); code != exit.Fine {
				t.Errorf("%s ended with %d %s", line, code, message)
			}
		}
	}
}

// splitWords splits a command with quotes as a shell does.
func splitWords(command string) []string {
	var words []string
	for i, part := range strings.FieldsFunc(strings.ReplaceAll(command, `"`, "'"), func(r rune) bool { return r == '\'' }) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

func TestNumbersAreReadUpToTheLimitsOfTheirFields(t *testing.T) {
	var small *int32
	var large *int64
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addNumberFlag(flags, &small, "small", 0, "")
	addNumberFlag(flags, &large, "large", 0, "")
	if err := flags.Parse([]string{"--small", "2147483647", "--large", "9223372036854775807"}); err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(small, 0) != math.MaxInt32 || ptr.Deref(large, 0) != math.MaxInt64 {
		t.Errorf("got %v and %v", small, large)
	}
}

func TestAPodOfAnyShapeCausesNoPanic(t *testing.T) {
	for name, tc := range map[string]struct {
		spec any
		want string
	}{
		"no spec":                   {nil, ""},
		"a spec that is text":       {"x", "reading the containers of pod web: .spec.containers accessor error"},
		"containers that are text":  {map[string]any{"containers": "x"}, "reading the containers of pod web: .spec.containers accessor error"},
		"a container that is text":  {map[string]any{"containers": []any{"x"}}, "reading the containers of pod web: spec.containers[0] is no object"},
		"a container without name":  {map[string]any{"containers": []any{map[string]any{}}}, "reading the containers of pod web: spec.containers[0] has no name"},
		"a name that is a number":   {map[string]any{"containers": []any{map[string]any{"name": int64(1)}}}, "reading the containers of pod web: spec.containers[0] has no name"},
		"a container that is null":  {map[string]any{"containers": []any{nil}}, "reading the containers of pod web: spec.containers[0] is no object"},
		"containers that are null":  {map[string]any{"containers": nil}, "reading the containers of pod web: .spec.containers accessor error"},
		"a name that is all right":  {map[string]any{"containers": []any{map[string]any{"name": "x"}}}, ""},
		"a list that is a map":      {map[string]any{"containers": map[string]any{}}, "reading the containers of pod web: .spec.containers accessor error"},
		"containers that are empty": {map[string]any{"containers": []any{}}, ""},
	} {
		pod := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
		if tc.spec != nil {
			pod.Object["spec"] = tc.spec
		}
		_, err := containerNames(pod, "containers")
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestAnAdvancedCronJobOfAnyShapeCausesNoPanic(t *testing.T) {
	template := func(value any) map[string]any {
		return map[string]any{"spec": map[string]any{"template": map[string]any{"broadcastJobTemplate": value}}}
	}
	spec := map[string]any{"parallelism": int64(1)}
	for name, tc := range map[string]struct {
		object map[string]any
		want   string
	}{
		"nothing":                  {map[string]any{}, "it has no spec.template.broadcastJobTemplate: its jobs are of another kind"},
		"a spec that is text":      {map[string]any{"spec": "x"}, ".spec.template accessor error"},
		"a template that is text":  {template("x"), ".spec.template.broadcastJobTemplate accessor error"},
		"a template that is null":  {template(nil), ".spec.template.broadcastJobTemplate accessor error"},
		"a template that is empty": {template(map[string]any{}), "its spec.template.broadcastJobTemplate has no spec"},
		"a list of specs":          {template(map[string]any{"spec": []any{}}), ".spec accessor error"},
		"labels that are a list":   {template(map[string]any{"spec": spec, "metadata": map[string]any{"labels": []any{}}}), ".metadata.labels accessor error"},
		"a label that is a number": {template(map[string]any{"spec": spec, "metadata": map[string]any{"labels": map[string]any{"a": int64(1)}}}), ".metadata.labels accessor error"},
		"metadata that is text":    {template(map[string]any{"spec": spec, "metadata": "x"}), ".metadata.labels accessor error"},
		"an annotation in a map":   {template(map[string]any{"spec": spec, "metadata": map[string]any{"annotations": map[string]any{"a": map[string]any{}}}}), ".metadata.annotations accessor error"},
	} {
		if _, err := readTemplate(&unstructured.Unstructured{Object: tc.object}); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// writeKubeconfig writes a kubeconfig for the time of a test.
func writeKubeconfig(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// manifestNames are the names of manifests, in order.
func manifestNames() []string { return slices.Sorted(maps.Keys(manifests)) }
