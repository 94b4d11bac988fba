// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// newOptions are options after a command line.
func newOptions(t *testing.T, args ...string) (*Options, *pflag.FlagSet) {
	t.Helper()
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("kruise-manager", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, fs
}

// The table of PL-10. What differs is said in the comments.
func TestFlagsAndTheirDefaults(t *testing.T) {
	want := map[string]string{
		"rest-config-qps": "500", "rest-config-burst": "1000", // 30 and 50: rollouts would wait for them
		"pprof-addr":     "localhost:8090",                          // :8090: only the host itself may read profiles
		"decisions-addr": ":8443", "decisions-api-service": "false", // ours
		"metrics-addr": ":8080", "health-probe-addr": ":8000", "allow-privileged": "true", "enable-leader-election": "true",
		"leader-election-namespace": "kruise-system", "leader-election-lease-duration": "15s", "leader-election-renew-deadline": "10s",
		"leader-election-retry-period": "2s", "leader-election-resource-lock": "leases", "leader-election-id": "kruise-manager",
		"namespace": "", "enable-pprof": "true", "tenant-bundle-hosts": "[]", "sync-period": "", "controller-cache-sync-timeout": "2m0s",
		"webhook-initialize-timeout": "1m0s", "default-ttlseconds-for-always-nodeimage": "300", "expectation-timeout": "5m0s",
		"rate-limiter-base-delay": "5ms", "rate-limiter-qps": "10", "rate-limiter-bucket-size": "100",
		"rate-limiter-max-delay": "1m0s", // 16m40s: what failed would go on a quarter of an hour after its cause is gone
		"disable-no-deepcopy":    "false", "protection-log-path": "/log", "ws-enabled-versioned-status": "deployment,replicaset",
		"pod-failure-policy": "Ignore", "webhook-timeout-seconds": "3", "policy-dir": "", // ours
		"webhook-client-ca-file": "", "webhook-client-names": "[]", // ours
		"decision-log-stdout": "false", "decision-log-file": "", "decision-log-file-max-size": "100", "decision-log-file-keep": "5", // ours
		"decision-log-url": "", "decision-log-header": "[]", "decision-log-token-file": "", "decision-log-ca-file": "", "decision-log-interval": "5s",
		"decision-log-mask": "[]", "decision-log-unmasked": "false", "decision-log-points": "[]",
		"cloneset-scaling-exclude-preparing-delete": "false", "assign-pods-by-scheduler": "true", "assign-bcj-pods-by-scheduler": "true",
		"nodeimage-creation-delay": "30s", "feature-gates": "",
	}
	for _, kind := range []string{
		"cloneset", "statefulset", "daemonset", "broadcastjob", "advancedcronjob", "sidecarset", "uniteddeployment", "workloadspread",
		"persistentpodstate", "podprobemarker", "nodepodprobe", "resourcedistribution", "imagepulljob", "nodeimage", "crr",
		"sidecarterminator", "podunavailablebudget",
	} {
		want[kind+"-workers"] = "3"
	}
	want["concurrent-cloneset-syncs"] = "3" // of old releases
	o, fs := newOptions(t)
	got := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "v" || f.Name == "vmodule" || strings.HasPrefix(f.Name, "log"): // component-base's
		default:
			got[f.Name] = f.DefValue
			if f.Usage == "" {
				t.Errorf("--%s does not say what it is for", f.Name)
			}
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if fs.Lookup("v") == nil || fs.Lookup("logging-format") == nil {
		t.Error("the flags of logs are missing")
	}
	if err := o.validateFlags(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestFlagsThatAreTaken(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing is served":                         {"--metrics-addr=0", "--health-probe-addr=0", "--decisions-addr=0", "--pprof-addr=0"},
		"addresses of one interface":                {"--metrics-addr=127.0.0.1:0", "--decisions-addr=[::1]:8443"},
		"a resync":                                  {"--sync-period=10h"},
		"no resync, as the chart has it":            {"--sync-period=0"},
		"times of the election, if there is none":   {"--enable-leader-election=false", "--leader-election-lease-duration=1ms", "--leader-election-namespace="},
		"an election that is quick":                 {"--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=1s"},
		"more workers":                              {"--daemonset-workers=50"},
		"a rate that is a fraction":                 {"--rest-config-qps=0.5"},
		"decisions to everywhere":                   {"--decision-log-stdout", "--decision-log-file=/log/decisions.log", "--decision-log-url=https://logs.example.com/logs", "--decision-log-token-file=/t", "--decision-log-ca-file=/ca.crt", "--decision-log-header=A=b,C=d", "--decision-log-mask=/input/**/owner", "--decision-log-points=rollout/plan,protection/budget"},
		"a maximal delay that is the first already": {"--rate-limiter-base-delay=1s", "--rate-limiter-max-delay=1s"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := newOptions(t, args...)
			if err := o.validateFlags(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWorkersByTheNameOfOldReleases(t *testing.T) {
	o, _ := newOptions(t, "--concurrent-cloneset-syncs=10")
	if got := *o.Workers["CloneSet"]; got != 10 {
		t.Errorf("%d CloneSets are reconciled at once", got)
	}
}

func TestFlagsThatAreRefused(t *testing.T) {
	for _, tc := range []struct{ arg, want string }{
		{"--rest-config-qps=-1", "--rest-config-qps is -1, want more than 0"},
		{"--rest-config-qps=0", "--rest-config-qps is 0, want more than 0"},
		{"--rest-config-qps=NaN", "--rest-config-qps is NaN, want more than 0"},
		{"--rest-config-burst=0", "--rest-config-burst is 0, want 1 or more"},
		{"--cloneset-workers=0", "--cloneset-workers is 0, want 1 or more"},
		{"--imagepulljob-workers=0", "--imagepulljob-workers is 0, want 1 or more"},
		{"--default-ttlseconds-for-always-nodeimage=-1", "--default-ttlseconds-for-always-nodeimage is -1, want 0 to 1073741824"},
		{"--metrics-addr=", `--metrics-addr is "", want an address such as :8080 or localhost:8080, or 0 for none`},
		{"--health-probe-addr=8000", `--health-probe-addr is "8000", want an address`},
		{"--decisions-addr=:x", `--decisions-addr is ":x", want an address`},
		{"--decisions-addr=0 --decisions-api-service", "--decisions-api-service is true, want a --decisions-addr with it"},
		{"--pprof-addr=localhost:70000", `--pprof-addr is "localhost:70000", want an address`},
		{"--sync-period=10", `--sync-period is "10", want a duration such as 10h, or 0 for never`},
		{"--sync-period=-10h", `--sync-period is "-10h", want a duration`},
		{"--controller-cache-sync-timeout=0", "--controller-cache-sync-timeout is 0s, want more than 0"},
		{"--webhook-initialize-timeout=-1s", "--webhook-initialize-timeout is -1s, want more than 0"},
		{"--expectation-timeout=0", "--expectation-timeout is 0s, want more than 0"},
		{"--rate-limiter-base-delay=0", "--rate-limiter-base-delay is 0s, want more than 0"},
		{"--rate-limiter-max-delay=1ms", "--rate-limiter-max-delay is 1ms, want 5ms, which is --rate-limiter-base-delay, or more"},
		{"--rate-limiter-qps=0", "--rate-limiter-qps is 0, want 1 or more"},
		{"--rate-limiter-bucket-size=0", "--rate-limiter-bucket-size is 0, want 1 or more"},
		{"--pod-failure-policy=fail", `--pod-failure-policy is "fail", want Ignore or Fail`},
		{"--webhook-timeout-seconds=31", `--webhook-timeout-seconds is 31, want 1 to 30`},
		{"--webhook-client-names=front-proxy-client", `--webhook-client-names is front-proxy-client, want a --webhook-client-ca-file with it`},
		{"--protection-log-path=", `--protection-log-path is "", want a directory`},
		{"--decision-log-file-max-size=-1", "--decision-log-file-max-size is -1, want 0 or more"},
		{"--decision-log-file-keep=-1", "--decision-log-file-keep is -1, want 0 to 1000"},
		{"--decision-log-interval=0", "--decision-log-interval is 0s, want more than 0"},
		{"--decision-log-url=logs", `--decision-log-url is "logs", want http:// or https://, a host, and no user`},
		{"--decision-log-token-file=/t", "--decision-log-token-file is /t, want --decision-log-url with it"},
		{"--decision-log-ca-file=/ca.crt", "--decision-log-ca-file is /ca.crt, want an https:// --decision-log-url with it"},
		{"--decision-log-header=a=b", "--decision-log-header is map[a:b], want --decision-log-url with it"},
		{"--decision-log-mask=owner", `--decision-log-mask: pattern "owner" of what is masked does not begin with /`},
		{"--decision-log-points=rollout/x", `--decision-log-points is "rollout/x", want decision points such as rollout/plan`},
		{"--leader-election-resource-lock=configmaps", `--leader-election-resource-lock is "configmaps", want leases`},
		{"--leader-election-namespace=", `--leader-election-namespace is "", want a namespace`},
		{"--leader-election-id=", `--leader-election-id is "", want the name of a lease`},
		{"--leader-election-retry-period=0", "--leader-election-retry-period is 0s, want more than 0"},
		{"--leader-election-retry-period=9s", "--leader-election-renew-deadline is 10s, want more than 10.8s, which is 1.2 times --leader-election-retry-period"},
		{"--leader-election-lease-duration=10s", "--leader-election-lease-duration is 10s, want 1s or more, and more than 10s, which is --leader-election-renew-deadline"},
	} {
		t.Run(tc.arg, func(t *testing.T) {
			o, _ := newOptions(t, strings.Fields(tc.arg)...)
			err := o.validateFlags()
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	o, _ := newOptions(t, "--rest-config-qps=0", "--cloneset-workers=0")
	if err := o.validateFlags(); err == nil || !strings.Contains(err.Error(), "qps") || !strings.Contains(err.Error(), "cloneset") {
		t.Errorf("the error does not list all mistakes: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	defaults := webhookEnv{
		port: 9876, certDir: "/tmp/kruise-webhook-certs", service: "kruise-webhook-service", secret: "kruise-webhook-certs",
		namespace: "kruise-system", agents: "kruise-system", renewBefore: 180 * 24 * time.Hour,
	}
	for name, tc := range map[string]struct {
		env  map[string]string
		want func(*webhookEnv)
		err  string
	}{
		"nothing is set": {},
		"all is set": {
			env: map[string]string{
				"WEBHOOK_PORT": "9443", "WEBHOOK_CERT_DIR": "/c", "SERVICE_NAME": "s", "SECRET_NAME": "c",
				"POD_NAMESPACE": "n", "POD_NAME": "p", "WEBHOOK_HOST": "h", "CERTS_RENEW_BEFORE": "2y", "DAEMON_NAMESPACE": "agents",
			},
			want: func(e *webhookEnv) {
				*e = webhookEnv{9443, "/c", "s", "c", "n", "agents", "p", "h", 2 * 365 * 24 * time.Hour}
			},
		},
		"node agents are with the manager":   {env: map[string]string{"POD_NAMESPACE": "n"}, want: func(e *webhookEnv) { e.namespace, e.agents = "n", "n" }},
		"days":                               {env: map[string]string{"CERTS_RENEW_BEFORE": "30d"}, want: func(e *webhookEnv) { e.renewBefore = 720 * time.Hour }},
		"no unit":                            {env: map[string]string{"CERTS_RENEW_BEFORE": "30"}, err: `environment variable CERTS_RENEW_BEFORE is "30", want a number of days, months or years such as 30d, 6m or 1y, from 1d to 9y`},
		"only a unit":                        {env: map[string]string{"CERTS_RENEW_BEFORE": "d"}, err: "CERTS_RENEW_BEFORE"},
		"hours":                              {env: map[string]string{"CERTS_RENEW_BEFORE": "48h"}, err: "CERTS_RENEW_BEFORE"},
		"nothing, which is 90 days":          {env: map[string]string{"CERTS_RENEW_BEFORE": "0d"}, err: "CERTS_RENEW_BEFORE"},
		"a time before":                      {env: map[string]string{"CERTS_RENEW_BEFORE": "-1d"}, err: "CERTS_RENEW_BEFORE"},
		"longer than certificates are valid": {env: map[string]string{"CERTS_RENEW_BEFORE": "10y"}, err: "CERTS_RENEW_BEFORE"},
		"longer than a number has":           {env: map[string]string{"CERTS_RENEW_BEFORE": "300000000000000000y"}, err: "CERTS_RENEW_BEFORE"},
		"a port that is a name":              {env: map[string]string{"WEBHOOK_PORT": "https"}, err: `environment variable WEBHOOK_PORT is "https", want a port from 1 to 65535`},
		"a port that is too large":           {env: map[string]string{"WEBHOOK_PORT": "65536"}, err: "WEBHOOK_PORT"},
		"no port":                            {env: map[string]string{"WEBHOOK_PORT": "0"}, err: "WEBHOOK_PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readEnv(func(name string) string { return tc.env[name] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := defaults
			if tc.want != nil {
				tc.want(&want)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// A tool that makes certificates can make them for addresses. The manager cannot, and its webhooks would fail for all.
func TestAnAddressNeedsCertificatesOfAnotherTool(t *testing.T) {
	for _, tc := range []struct {
		host, gates string
		ok          bool
	}{
		{"10.0.0.1", "", false}, {"fd00::7", "AllAlpha=true", false}, {"fd00::7", "EnableExternalCerts=true", true}, {"kruise.example.com", "", true}, {"", "", true},
	} {
		t.Setenv("WEBHOOK_HOST", tc.host)
		o, _ := newOptions(t, "--feature-gates="+tc.gates)
		// A process applies flags of logs once, so that another error is none of the host.
		err := o.Complete()
		if refused := err != nil && strings.Contains(err.Error(), "WEBHOOK_HOST is \""+tc.host+"\", want a host name"); refused == tc.ok {
			t.Errorf("%q with gates %q: %v", tc.host, tc.gates, err)
		}
	}
}
