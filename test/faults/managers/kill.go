// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/process"
)

// KillAtRandom kills managers at random until ctx is done, and starts them again. Every is the mean time between two kills; 0 for none.
// All is how many of four kills are of all managers at once; if it is 0, no manager is killed before all others are ready.
func KillAtRandom(ctx context.Context, replicas []*Replica, every time.Duration, all int, seed uint64) error {
	if every == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	about := func(mean time.Duration) time.Duration {
		return time.Duration((0.2 + 1.6*random.Float64()) * float64(mean))
	}
	for {
		if err := tend(ctx, replicas, about(every), all == 0); err != nil || ctx.Err() != nil {
			return err
		}
		victims := replicas[random.IntN(len(replicas)):][:1]
		if random.IntN(4) < all {
			victims = replicas
		}
		for _, r := range victims {
			if err := r.Kill(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("killing a manager: %w", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(about(time.Second)):
		}
	}
}

// tend lets managers run for a time, and longer if all are to be ready. It starts those that have ended, as a kubelet does: killed or by
// themselves, because they could not keep their lease.
func tend(ctx context.Context, replicas []*Replica, d time.Duration, ready bool) error {
	for until := time.Now().Add(d); ; {
		well := true
		for _, r := range replicas {
			if err := r.revive(); err != nil {
				return fmt.Errorf("starting a manager again: %w", err)
			}
			well = well && (!ready || r.Ready())
		}
		if well && time.Now().After(until) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// revive starts a manager that does not run.
func (r *Replica) revive() error {
	running, err := process.Find(r.cluster.State.Dir)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", r.name, err)
	}
	if process.Names(running)[r.name] {
		return nil
	}
	return r.Start()
}

// Kills is how often managers were killed.
func Kills(replicas []*Replica) (n int) {
	for _, r := range replicas {
		n += r.Kills
	}
	return n
}
