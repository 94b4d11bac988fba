// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/controllers/kinds"
)

// refusals are the errors of flags.
type refusals []error

func (r *refusals) requireFlag(ok bool, flag string, value any, want string) {
	if !ok {
		*r = append(*r, fmt.Errorf("--%s is %v, want %s", flag, value, want))
	}
}

// validateFlags returns all errors of the flags.
func (o *Options) validateFlags() error {
	var r refusals
	r.requireFlag(o.QPS > 0, "rest-config-qps", o.QPS, "more than 0")
	r.requireFlag(o.Burst >= 1, "rest-config-burst", o.Burst, "1 or more")
	for _, w := range kinds.ActingWorkloads() {
		r.requireFlag(*o.Workers[w.Kind] >= 1, workersFlag(w), *o.Workers[w.Kind], "1 or more")
	}
	r.requireFlag(o.NodeImageWorkers >= 1, "nodeimage-workers", o.NodeImageWorkers, "1 or more")
	r.requireFlag(o.NodeImageCreationDelay >= 0, "nodeimage-creation-delay", o.NodeImageCreationDelay, "0 or more")
	r.requireFlag(o.ImagePullJobWorkers >= 1, "imagepulljob-workers", o.ImagePullJobWorkers, "1 or more")
	r.requireFlag(o.AlwaysNodeImageTTL >= 0 && o.AlwaysNodeImageTTL <= 1<<30, "default-ttlseconds-for-always-nodeimage", o.AlwaysNodeImageTTL, "0 to 1073741824")
	r.requireFlag(o.ResourceDistributionWorkers >= 1, "resourcedistribution-workers", o.ResourceDistributionWorkers, "1 or more")
	r.requireFlag(o.PodProbeMarkerWorkers >= 1, "podprobemarker-workers", o.PodProbeMarkerWorkers, "1 or more")
	r.requireFlag(o.SidecarTerminatorWorkers >= 1, "sidecarterminator-workers", o.SidecarTerminatorWorkers, "1 or more")
	r.requireFlag(o.NodePodProbeWorkers >= 1, "nodepodprobe-workers", o.NodePodProbeWorkers, "1 or more")
	r.requireFlag(o.PersistentPodStateWorkers >= 1, "persistentpodstate-workers", o.PersistentPodStateWorkers, "1 or more")
	r.requireFlag(o.CRRWorkers >= 1, "crr-workers", o.CRRWorkers, "1 or more")
	r.requireFlag(o.SidecarSetWorkers >= 1, "sidecarset-workers", o.SidecarSetWorkers, "1 or more")
	r.requireFlag(o.PodUnavailableBudgetWorkers >= 1, "podunavailablebudget-workers", o.PodUnavailableBudgetWorkers, "1 or more")
	r.requireFlag(o.RateBaseDelay > 0, "rate-limiter-base-delay", o.RateBaseDelay, "more than 0")
	r.requireFlag(o.RateMaxDelay >= o.RateBaseDelay, "rate-limiter-max-delay", o.RateMaxDelay, fmt.Sprintf("%s, which is --rate-limiter-base-delay, or more", o.RateBaseDelay))
	r.requireFlag(o.RateQPS >= 1, "rate-limiter-qps", o.RateQPS, "1 or more")
	r.requireFlag(o.RateBucket >= 1, "rate-limiter-bucket-size", o.RateBucket, "1 or more")
	r.requireFlag(o.CacheSyncTimeout > 0, "controller-cache-sync-timeout", o.CacheSyncTimeout, "more than 0")
	r.requireFlag(o.WebhookTimeout > 0, "webhook-initialize-timeout", o.WebhookTimeout, "more than 0")
	r.requireFlag(o.ExpectationTimeout > 0, "expectation-timeout", o.ExpectationTimeout, "more than 0")
	r.requireFlag(o.ProtectionLogPath != "", "protection-log-path", `""`, "a directory")
	r.requireFlag(o.PodFailurePolicy == "Ignore" || o.PodFailurePolicy == "Fail", "pod-failure-policy", strconv.Quote(o.PodFailurePolicy), "Ignore or Fail")
	r.requireFlag(o.WebhookTimeoutSeconds >= 1 && o.WebhookTimeoutSeconds <= 30, "webhook-timeout-seconds", o.WebhookTimeoutSeconds, "1 to 30")
	r.requireFlag(len(o.WebhookClientNames) == 0 || o.WebhookClientCAFile != "", "webhook-client-names", strings.Join(o.WebhookClientNames, ","), "a --webhook-client-ca-file with it")
	r.requireFlag(isPeriod(o.SyncPeriod), "sync-period", strconv.Quote(o.SyncPeriod), "a duration such as 10h, or 0 for never")
	for _, a := range []struct{ flag, addr string }{
		{"metrics-addr", o.MetricsAddr}, {"health-probe-addr", o.ProbeAddr}, {"decisions-addr", o.DecisionsAddr}, {"pprof-addr", o.PprofAddr},
	} {
		r.requireFlag(a.addr == "0" || isAddress(a.addr), a.flag, strconv.Quote(a.addr), "an address such as :8080 or localhost:8080, or 0 for none")
	}
	r.requireFlag(!o.DecisionsAPI || o.DecisionsAddr != "0", "decisions-api-service", o.DecisionsAPI, "a --decisions-addr with it")
	if err := o.decisionLogs.ValidateFlags(); err != nil {
		r = append(r, err)
	}
	if o.LeaderElection {
		o.validateElection(&r)
	}
	return errors.Join(r...)
}

// validateElection finds values that client-go would refuse later, and returns client-go's messages.
func (o *Options) validateElection(r *refusals) {
	r.requireFlag(o.LeaderElectionLock == "leases", "leader-election-resource-lock", strconv.Quote(o.LeaderElectionLock), "leases")
	r.requireFlag(o.LeaderElectionNS != "", "leader-election-namespace", `""`, "a namespace")
	r.requireFlag(o.LeaderElectionID != "", "leader-election-id", `""`, "the name of a lease")
	r.requireFlag(o.RetryPeriod > 0, "leader-election-retry-period", o.RetryPeriod, "more than 0")
	r.requireFlag(o.RenewDeadline > o.RetryPeriod*6/5, "leader-election-renew-deadline", o.RenewDeadline,
		fmt.Sprintf("more than %s, which is 1.2 times --leader-election-retry-period", o.RetryPeriod*6/5))
	r.requireFlag(o.LeaseDuration > o.RenewDeadline && o.LeaseDuration >= time.Second, "leader-election-lease-duration", o.LeaseDuration,
		fmt.Sprintf("1s or more, and more than %s, which is --leader-election-renew-deadline", o.RenewDeadline))
}

func isPeriod(s string) bool {
	if s == "" {
		return true
	}
	d, err := time.ParseDuration(s)
	return err == nil && d >= 0
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65535
}
