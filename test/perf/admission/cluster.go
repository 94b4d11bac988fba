// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/test/perf/procfs"
	"github.com/regatta-sh/regatta/test/perf/stand"
	"github.com/regatta-sh/regatta/test/perf/target"
)

// place is the cluster that a measurement gets.
type place struct{ stand.Options }

func (p *place) flags(f *pflag.FlagSet) {
	p.Flags(f, "admission", 20)
	f.IntVar(&p.Real, "real", target.RealNodes(), "its real nodes, which run the managers as a user's do (needs root); with 0 one manager runs beside it")
}

// measure has f measure on the cluster. In the end it prints to out what memory the managers took.
func (p *place) measure(ctx context.Context, out io.Writer, f func(context.Context, *stand.Stand) error) error {
	return p.Run(ctx, func(ctx context.Context, s *stand.Stand) error {
		if err := f(ctx, s); err != nil {
			return err
		}
		return memory(out, s.Target.Subject.PIDs)
	})
}

// memory tells what the managers took.
func memory(out io.Writer, pids []int) error {
	for _, pid := range pids {
		now, err := procfs.ResidentBytes(pid)
		if err != nil {
			return err
		}
		peak, err := procfs.PeakBytes(pid)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "a manager has %d MiB of memory, and had %d MiB at most\n", now>>20, peak>>20)
	}
	return nil
}
