// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/regatta-sh/regatta/test/perf/procfs"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// A reading is what had been used when a phase began.
type reading struct {
	target  *target.Target
	kind    workload.Kind
	started time.Time

	process    float64
	peers      map[string]float64
	machine    float64
	reconciles map[string]float64

	stop     chan struct{}
	resident chan int64
}

// between reads the memory of the process; its peak counts.
const between = 200 * time.Millisecond

func begin(ctx context.Context, t *target.Target, kind workload.Kind) (*reading, error) {
	r := &reading{target: t, kind: kind, stop: make(chan struct{}), resident: make(chan int64, 1)}
	var err error
	if r.process, r.peers, r.machine, err = r.read(); err != nil {
		return nil, err
	}
	if r.reconciles, err = reconciles(ctx, t.Metrics); err != nil {
		return nil, err
	}
	go r.sample()
	r.started = time.Now()
	return r, nil
}

// end returns what was used since, for so many pods.
func (r *reading) end(ctx context.Context, pods int) (report.Usage, error) {
	until := time.Now()
	close(r.stop)
	most := <-r.resident
	usage := report.Usage{WindowSeconds: until.Sub(r.started).Seconds()}
	process, peers, machine, err := r.read()
	if err != nil {
		return usage, err
	}
	if pids := r.target.PIDs(r.kind); len(pids) > 0 {
		now, err := resident(pids)
		if err != nil {
			return usage, err
		}
		usage.Process = &report.Process{CPUSeconds: process - r.process, ResidentBytes: now, ResidentBytesMax: max(most, now)}
	}
	usage.CPUSeconds = map[string]float64{"all": machine - r.machine}
	foreign := machine - r.machine
	if !r.kind.Native() { // else it is among the peers
		foreign -= process - r.process
	}
	for name, seconds := range peers {
		usage.CPUSeconds[name] = seconds - r.peers[name]
		foreign -= seconds - r.peers[name]
	}
	usage.CPUSeconds["foreign"] = max(foreign, 0)
	if usage.Load, err = procfs.Load(); err != nil {
		return usage, err
	}
	after, err := reconciles(ctx, r.target.Metrics)
	if err != nil {
		return usage, err
	}
	if after != nil {
		usage.Controllers = growth(r.reconciles, after)
		if name := r.kind.Reconciler; name != "" {
			n := usage.Controllers[name]
			usage.Reconciles = &n
		}
	}
	usage.Writes, err = writes(r.target, r.kind, r.started, until, pods)
	return usage, err
}

// self is the name under which this tool counts.
const self = "perf"

// read reads all CPU times.
func (r *reading) read() (process float64, peers map[string]float64, machine float64, err error) {
	if machine, err = procfs.BusySeconds(); err != nil {
		return 0, nil, 0, err
	}
	if process, err = cpu(r.target.PIDs(r.kind)); err != nil {
		return 0, nil, 0, err
	}
	peers = map[string]float64{}
	for name, pids := range r.target.Peers {
		// One that has come or gone is not what is measured.
		if peers[name], err = cpu(pids); err != nil && !procfs.Gone(err) {
			return 0, nil, 0, err
		}
	}
	peers[self], err = cpu([]int{os.Getpid()})
	return process, peers, machine, err
}

func cpu(pids []int) (sum float64, err error) {
	for _, pid := range pids {
		n, err := procfs.CPUSeconds(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func resident(pids []int) (sum int64, err error) {
	for _, pid := range pids {
		n, err := procfs.ResidentBytes(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// sample keeps the largest memory of the process until it is stopped.
func (r *reading) sample() {
	most := int64(0)
	for {
		// The caller reports at the end that the process has ended.
		if n, err := resident(r.target.PIDs(r.kind)); err == nil {
			most = max(most, n)
		}
		select {
		case <-r.stop:
			r.resident <- most
			return
		case <-time.After(between):
		}
	}
}

// abandon ends a reading after an error.
func (r *reading) abandon(err error) error {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	if _, gone := cpu(r.target.PIDs(r.kind)); gone != nil {
		return errors.Join(err, gone) // likely the reason
	}
	return err
}
