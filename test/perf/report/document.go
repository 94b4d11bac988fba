// SPDX-License-Identifier: Apache-2.0

// Package report is what a measurement says: one JSON document, and a table of
// it for people. The README describes the fields.
package report

import "time"

// Schema names the form of the document.
const Schema = "regatta.sh/perf/v1"

// A Document is everything that one command measured.
type Document struct {
	Schema   string    `json:"schema"`
	Started  time.Time `json:"started"`
	Machine  Machine   `json:"machine"`
	Cluster  Cluster   `json:"cluster"`
	Subject  Subject   `json:"subject"`
	Settings Settings  `json:"settings"`
	Runs     []Run     `json:"runs,omitempty"`
	Medians  []Median  `json:"medians,omitempty"`
	Scale    *Scale    `json:"scale,omitempty"`
}

// A Machine is what it was measured on.
type Machine struct {
	CPUs        int     `json:"cpus"`
	Model       string  `json:"model"`
	MemoryBytes int64   `json:"memoryBytes"`
	Kernel      string  `json:"kernel"`
	LoadBefore  float64 `json:"loadBefore"`
	LoadAfter   float64 `json:"loadAfter"`
}

// A Cluster is where it was measured.
type Cluster struct {
	Name       string `json:"name,omitempty"`
	Kubernetes string `json:"kubernetes"`
	Nodes      int    `json:"nodes"`
	// Real are those among them that run pods, and the managers with them.
	Real int `json:"realNodes"`
	// DelaySeconds is what each request of the managers and of the controller manager
	// takes longer.
	DelaySeconds float64 `json:"delaySeconds"`
	SchedulerQPS string  `json:"schedulerQPS,omitempty"`
}

// A Subject is what was measured.
type Subject struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	User    string `json:"user"`
	PIDs    []int  `json:"pids,omitempty"`
}

// Settings are what was asked for.
type Settings struct {
	Pods           int     `json:"pods"` // of kinds that do not have one on each node
	MaxUnavailable string  `json:"maxUnavailable"`
	SettleSeconds  float64 `json:"settleSeconds"`
	// Bundle is the file of the ClusterPolicyBundle that was installed, if any.
	Bundle string `json:"bundle,omitempty"`
}

// A Run measures one workload from its creation to its deletion.
type Run struct {
	Number       int     `json:"number"`
	Workload     string  `json:"workload"`
	DelaySeconds float64 `json:"delaySeconds"` // see Cluster
	// Yardstick is the workload that it is compared with, if that was measured too.
	Yardstick string  `json:"yardstick,omitempty"`
	Phases    []Phase `json:"phases"`
}

// A Phase is one change, until all pods have it and are available.
type Phase struct {
	Name         string    `json:"name"`
	Started      time.Time `json:"started"`
	Seconds      float64   `json:"seconds"`
	FirstSeconds float64   `json:"firstSeconds"`
	// OfYardstick is Seconds over those of the yardstick in the same phase.
	OfYardstick *float64 `json:"ofYardstick,omitempty"`
	// Missing counts pods that were not available.
	MostMissing int     `json:"mostMissing"`
	MeanMissing float64 `json:"meanMissing"`
	Usage
}

// Usage is what a phase cost, until the cluster was quiet again. What could not
// be found out is left out.
type Usage struct {
	WindowSeconds float64  `json:"windowSeconds"`
	Writes        *Writes  `json:"writes,omitempty"`
	Process       *Process `json:"process,omitempty"`
	Reconciles    *float64 `json:"reconciles,omitempty"` // of the controller of the workload
	// Controllers are the reconciles of all controllers of the managers, by name.
	Controllers map[string]float64 `json:"controllers,omitempty"`
	// Heartbeats are those of all nodes, in a phase that nothing else happens in.
	Heartbeats *Heartbeats `json:"heartbeats,omitempty"`
	Load       float64     `json:"load1"`
	// CPUSeconds are those of the other processes of a local cluster by name;
	// of everything on the machine (all); and of what is neither they, the
	// process measured nor this tool (foreign): the noise.
	CPUSeconds map[string]float64 `json:"cpuSeconds,omitempty"`
}

// Heartbeats count what kubelets write of their own accord.
type Heartbeats struct {
	Statuses int `json:"statuses"`
	Leases   int `json:"leases"`
}

// Writes are requests of the measured user that the API server answered.
type Writes struct {
	Total      int       `json:"total"`
	PerPod     float64   `json:"perPod"`
	OnPods     int       `json:"onPods"` // and their subresources
	OnPodsEach float64   `json:"onPodsPerPod"`
	OnStatus   int       `json:"onStatus"` // of the workload
	Failed     int       `json:"failed"`
	DryRuns    int       `json:"dryRuns"` // among them, that were not stored
	Requests   []Request `json:"requests"`
	// Rates are the requests of each second of the phase by their sort, such as
	// "create pods".
	Rates map[string][]int `json:"rates,omitempty"`
	// CreateMillis is how long requests that create a pod took at the API server,
	// in milliseconds.
	CreateMillis *Spread `json:"createMillis,omitempty"`
}

// A Request counts requests of one sort.
type Request struct {
	User     string  `json:"user"`
	Verb     string  `json:"verb"`
	Resource string  `json:"resource"`
	Writes   int     `json:"writes"`
	Failed   int     `json:"failed,omitempty"`
	DryRuns  int     `json:"dryRuns,omitempty"`
	PerPod   float64 `json:"perPod"`
}

// A Process is what the measured process used.
type Process struct {
	CPUSeconds       float64 `json:"cpuSeconds"`
	ResidentBytes    int64   `json:"residentBytes"` // at the end
	ResidentBytesMax int64   `json:"residentBytesMax"`
}

// A Median sums up the runs of one phase.
type Median struct {
	Workload     string   `json:"workload"`
	DelaySeconds float64  `json:"delaySeconds"`
	Phase        string   `json:"phase"`
	Runs         int      `json:"runs"`
	Seconds      Spread   `json:"seconds"`
	PerPod       *float64 `json:"writesPerPod,omitempty"`
	CPUSeconds   *float64 `json:"cpuSeconds,omitempty"`
}

// A Spread is how far numbers are from each other.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// A Scale measures many workloads at once.
type Scale struct {
	Workloads int          `json:"workloads"`
	Pods      int          `json:"podsEach"`
	Phases    []ScalePhase `json:"phases"`
}

// A ScalePhase is one change of all workloads. Starved ones would have a First
// far beyond that of the others.
type ScalePhase struct {
	Name     string  `json:"name"`
	Seconds  float64 `json:"seconds"`
	First    Spread  `json:"firstSeconds"`    // until the first pod was changed
	Complete Spread  `json:"completeSeconds"` // until all were, and available
	Usage
}

// Add adds a run, compared with that of its yardstick with the same number and delay.
func (d *Document) Add(r Run) {
	for _, other := range d.Runs {
		if other.Number != r.Number || other.DelaySeconds != r.DelaySeconds || other.Workload != r.Yardstick {
			continue
		}
		for i := range r.Phases {
			r.Phases[i].OfYardstick = ratio(r.Phases[i], other.Phases)
		}
	}
	d.Runs = append(d.Runs, r)
}

// ratio is the time of a phase over that of the one of the same name, nil without one.
func ratio(p Phase, others []Phase) *float64 {
	for _, other := range others {
		if other.Name == p.Name && other.Seconds > 0 {
			n := p.Seconds / other.Seconds
			return &n
		}
	}
	return nil
}
