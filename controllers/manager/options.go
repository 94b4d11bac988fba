// SPDX-License-Identifier: Apache-2.0

// Package manager assembles the controllers, webhooks and policies into one
// process (PL-09 to PL-11).
package manager

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// Options are the flags of the manager, with the names and defaults of PL-10 except the client's
// rates: OpenKruise's rates of 30 and 50 requests a second slow down its rollouts.
type Options struct {
	Logging *logsapi.LoggingConfiguration
	Gates   features.Gates

	QPS           float32
	Burst         int
	MetricsAddr   string
	ProbeAddr     string
	DecisionsAddr string
	// DecisionsAPI is whether the manager keeps the CA in the APIService of the API that is served at DecisionsAddr.
	DecisionsAPI       bool
	LeaderElection     bool
	LeaderElectionNS   string
	LeaseDuration      time.Duration
	RenewDeadline      time.Duration
	RetryPeriod        time.Duration
	LeaderElectionID   string
	LeaderElectionLock string
	Namespace          string
	Pprof              bool
	PprofAddr          string
	SyncPeriod         string
	CacheSyncTimeout   time.Duration
	WebhookTimeout     time.Duration
	ExpectationTimeout time.Duration
	// Workers is the number of workers of each controller of workloads, by kind.
	Workers map[string]*int

	PodUnavailableBudgetWorkers int
	SidecarSetWorkers           int
	BroadcastJobWorkers         int
	BroadcastJobAffinity        bool
	AdvancedCronJobWorkers      int
	PersistentPodStateWorkers   int
	UnitedDeploymentWorkers     int
	WorkloadSpreadWorkers       int
	// VersionedSpreads are the kinds of workloads whose versions a WorkloadSpread counts separately.
	VersionedSpreads            string
	CRRWorkers                  int
	NodeImageWorkers            int
	ResourceDistributionWorkers int
	PodProbeMarkerWorkers       int
	NodePodProbeWorkers         int
	SidecarTerminatorWorkers    int
	NodeImageCreationDelay      time.Duration
	ImagePullJobWorkers         int
	AlwaysNodeImageTTL          int

	ExcludePreparingDelete bool
	PodsByScheduler        bool
	// AllowPrivileged accepts templates with privileged containers.
	AllowPrivileged bool
	// CopyCached makes the client copy all lists that come from the caches.
	CopyCached bool

	ProtectionLogPath     string
	PolicyDir             string
	TenantBundleHosts     []string
	PodFailurePolicy      string
	WebhookTimeoutSeconds int32
	WebhookClientCAFile   string
	WebhookClientNames    []string

	RateBaseDelay time.Duration
	RateMaxDelay  time.Duration
	RateQPS       int
	RateBucket    int

	decisionLogs policyhost.DecisionLogs

	webhooks   webhookEnv
	gateMemory uint64
}

// gateMemory is how much memory the check of a policy bundle may use. It is a part of the container's
// 512 MiB, besides the memory that the manager itself needs.
const gateMemory = 256 << 20

// NewOptions makes options with their defaults.
func NewOptions() (*Options, error) {
	gates, err := features.New()
	if err != nil {
		return nil, err
	}
	return &Options{Logging: logsapi.NewLoggingConfiguration(), Gates: gates, gateMemory: gateMemory}, nil
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	logsapi.AddFlags(o.Logging, fs)
	fs.Var(o.Gates, "feature-gates", "A list of key=value pairs that turn features on or off, such as CloneSetShortHash=true. AllAlpha and AllBeta stand for all of their stage.")
	fs.Float32Var(&o.QPS, "rest-config-qps", 500, "Requests a second to the API server.")
	fs.IntVar(&o.Burst, "rest-config-burst", 1000, "Requests to the API server beyond that for a moment.")
	fs.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "Address that metrics are served on; 0 for none.")
	fs.StringVar(&o.ProbeAddr, "health-probe-addr", ":8000", "Address that healthz and readyz are served on.")
	fs.StringVar(&o.DecisionsAddr, "decisions-addr", ":8443", "Address that the decisions are explained on, with TLS and the authentication of the API server; 0 for none.")
	fs.BoolVar(&o.DecisionsAPI, "decisions-api-service", false, "Write the CA of that address to the APIService "+explain.APIService+", by which the API server passes on questions.")
	fs.BoolVar(&o.LeaderElection, "enable-leader-election", true, "Let one of several managers act at a time.")
	fs.StringVar(&o.LeaderElectionNS, "leader-election-namespace", "kruise-system", "Namespace of the lease.")
	fs.DurationVar(&o.LeaseDuration, "leader-election-lease-duration", 15*time.Second, "How long others wait before they take a lease that was not renewed.")
	fs.DurationVar(&o.RenewDeadline, "leader-election-renew-deadline", 10*time.Second, "How long the leader tries to renew before it gives up.")
	fs.DurationVar(&o.RetryPeriod, "leader-election-retry-period", 2*time.Second, "How long to wait between tries.")
	fs.StringVar(&o.LeaderElectionLock, "leader-election-resource-lock", "leases", "Kind of the lock; only leases.")
	fs.StringVar(&o.LeaderElectionID, "leader-election-id", "kruise-manager", "Name of the lease.")
	fs.StringVar(&o.Namespace, "namespace", "", "Act in this namespace only; all if empty.")
	fs.BoolVar(&o.Pprof, "enable-pprof", true, "Serve profiles.")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "localhost:8090", "Address that profiles are served on.")
	fs.StringVar(&o.SyncPeriod, "sync-period", "", "How often everything is reconciled without a change, such as 10h; never if empty or 0.")
	fs.DurationVar(&o.CacheSyncTimeout, "controller-cache-sync-timeout", 2*time.Minute, "How long a controller waits for its cache at the start.")
	fs.DurationVar(&o.WebhookTimeout, "webhook-initialize-timeout", 60*time.Second, "How long to wait for the certificates of the webhooks.")
	fs.DurationVar(&o.ExpectationTimeout, "expectation-timeout", 5*time.Minute, "How long the cache may take to show a write before it is looked into.")
	fs.DurationVar(&o.RateBaseDelay, "rate-limiter-base-delay", 5*time.Millisecond, "First delay of an object that failed.")
	fs.DurationVar(&o.RateMaxDelay, "rate-limiter-max-delay", requeue.LongestBackOff, "Longest delay of an object that fails.")
	fs.IntVar(&o.RateQPS, "rate-limiter-qps", 10, "Retries a second of all failing objects of a controller.")
	fs.IntVar(&o.RateBucket, "rate-limiter-bucket-size", 100, "Retries beyond that for a moment.")
	o.Workers = map[string]*int{}
	for _, w := range kinds.ActingWorkloads() {
		o.Workers[w.Kind] = fs.Int(workersFlag(w), 3, fmt.Sprintf("How many %ss are reconciled at once.", w.Kind))
	}
	fs.IntVar(&o.SidecarSetWorkers, "sidecarset-workers", 3, "How many SidecarSets are reconciled at once.")
	fs.IntVar(&o.BroadcastJobWorkers, "broadcastjob-workers", 3, "How many BroadcastJobs are reconciled at once.")
	fs.IntVar(&o.AdvancedCronJobWorkers, "advancedcronjob-workers", 3, "How many AdvancedCronJobs are reconciled at once.")
	fs.IntVar(&o.PersistentPodStateWorkers, "persistentpodstate-workers", 3, "How many PersistentPodStates are reconciled at once.")
	fs.IntVar(&o.UnitedDeploymentWorkers, "uniteddeployment-workers", 3, "How many UnitedDeployments are reconciled at once.")
	fs.IntVar(&o.WorkloadSpreadWorkers, "workloadspread-workers", 3, "How many WorkloadSpreads are reconciled at once.")
	fs.StringVar(&o.VersionedSpreads, "ws-enabled-versioned-status", "deployment,replicaset", "Kinds of workloads, in lower case, whose versions a WorkloadSpread counts by themselves.")
	fs.BoolVar(&o.BroadcastJobAffinity, "assign-bcj-pods-by-scheduler", true, "Let the scheduler put the pods of BroadcastJobs on their nodes, by node affinity, rather than the manager.")
	fs.IntVar(&o.PodUnavailableBudgetWorkers, "podunavailablebudget-workers", 3, "How many PodUnavailableBudgets are reconciled at once.")
	fs.IntVar(&o.NodeImageWorkers, "nodeimage-workers", 3, "How many NodeImages are reconciled at once.")
	fs.DurationVar(&o.NodeImageCreationDelay, "nodeimage-creation-delay", 30*time.Second, "How long a node must be ready before it has a NodeImage.")
	fs.IntVar(&o.ImagePullJobWorkers, "imagepulljob-workers", 3, "How many ImagePullJobs are reconciled at once.")
	fs.IntVar(&o.AlwaysNodeImageTTL, "default-ttlseconds-for-always-nodeimage", 300, "How many seconds the tags of ImagePullJobs that end stay in NodeImages beyond the time that their jobs say.")
	fs.IntVar(&o.CRRWorkers, "crr-workers", 3, "How many ContainerRecreateRequests are reconciled at once.")
	fs.IntVar(&o.ResourceDistributionWorkers, "resourcedistribution-workers", 3, "How many ResourceDistributions are reconciled at once.")
	fs.IntVar(&o.PodProbeMarkerWorkers, "podprobemarker-workers", 3, "How many PodProbeMarkers are reconciled at once.")
	fs.IntVar(&o.NodePodProbeWorkers, "nodepodprobe-workers", 3, "How many NodePodProbes are worked on at once, without those that wait for their writes.")
	fs.IntVar(&o.SidecarTerminatorWorkers, "sidecarterminator-workers", 3, "How many pods whose sidecars may end are reconciled at once.")
	fs.BoolVar(&o.ExcludePreparingDelete, "cloneset-scaling-exclude-preparing-delete", false, "Leave pods in PreparingDelete out of the replicas of every CloneSet.")
	fs.BoolVar(&o.PodsByScheduler, "assign-pods-by-scheduler", true, "Let the scheduler put the pods of DaemonSets onto their nodes; otherwise the pods name their node themselves.")
	fs.StringVar(&o.ProtectionLogPath, "protection-log-path", "/log", "Directory of protection.log, where refused deletions are written, a JSON object a line.")
	fs.StringVar(&o.PolicyDir, "policy-dir", "", "Directory that keeps the active policy bundles for a start while the API server cannot be asked; none if empty.")
	fs.StringSliceVar(&o.TenantBundleHosts, "tenant-bundle-hosts", nil, "Hosts that PolicyBundles may be fetched from, such as registry.example.com:5000 or *.example.com; none if empty. ClusterPolicyBundles may be fetched from anywhere.")
	fs.StringVar(&o.PodFailurePolicy, "pod-failure-policy", "Ignore", "What the API server does with requests for pods that the webhooks should be asked about when no manager answers: Ignore lets them through, Fail refuses them.")
	fs.Int32Var(&o.WebhookTimeoutSeconds, "webhook-timeout-seconds", 3, "How long the API server waits for the webhooks of protection, 1 to 30.")
	fs.StringVar(&o.WebhookClientCAFile, "webhook-client-ca-file", "", "File with certificates of CAs in PEM. If set, admission webhooks take requests only of clients with a certificate of one of them; the API server presents the one in the kubeConfigFile of its AdmissionConfiguration. Changes of the file are followed.")
	fs.StringSliceVar(&o.WebhookClientNames, "webhook-client-names", nil, "Common names that the certificate of a client of --webhook-client-ca-file may have; any if empty.")
	o.decisionLogs.AddFlags(fs)
	fs.BoolVar(&o.AllowPrivileged, "allow-privileged", true, "Take templates of pods with privileged containers. The API server has a flag of that name, too.")
	fs.BoolVar(&o.CopyCached, "disable-no-deepcopy", false, "Copy all objects that are listed from the caches, which costs memory and time. For debugging: a controller that changes cached objects then behaves otherwise.")
	fs.IntVar(o.Workers["CloneSet"], "concurrent-cloneset-syncs", 3, "The same as --cloneset-workers.")
	older := fs.Lookup("concurrent-cloneset-syncs")
	older.Deprecated, older.Hidden = "use --cloneset-workers", true
}

func workersFlag(w kinds.Workload) string { return strings.ToLower(w.Kind) + "-workers" }

// Complete checks the flags, reads the environment, and resolves the gates.
func (o *Options) Complete() error {
	env, envErr := readEnv(os.Getenv)
	if err := errors.Join(o.validateFlags(), envErr); err != nil {
		return err
	}
	if err := o.Gates.ResolveDependencies(os.Getenv("CUSTOM_RESOURCE_ENABLE")); err != nil {
		return err
	}
	if err := env.checkHost(o.Gates.Enabled(features.EnableExternalCerts)); err != nil {
		return err
	}
	o.webhooks = env
	if err := logsapi.ValidateAndApply(o.Logging, nil); err != nil {
		return fmt.Errorf("applying log flags: %w", err)
	}
	logs.InitLogs()
	return nil
}
