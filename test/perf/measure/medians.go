// SPDX-License-Identifier: Apache-2.0

package measure

import "github.com/regatta-sh/regatta/test/perf/report"

// Medians sums up runs, phase by phase in the order in which they came.
func Medians(runs []report.Run) []report.Median {
	type key struct {
		workload, phase string
		delay           float64
	}
	var order []key
	phases := map[key][]report.Phase{}
	for _, run := range runs {
		for _, p := range run.Phases {
			k := key{run.Workload, p.Name, run.DelaySeconds}
			if phases[k] == nil {
				order = append(order, k)
			}
			phases[k] = append(phases[k], p)
		}
	}
	out := make([]report.Median, len(order))
	for i, k := range order {
		var seconds, perPod, cpu []float64
		for _, p := range phases[k] {
			seconds = append(seconds, p.Seconds)
			if p.Writes != nil {
				perPod = append(perPod, p.Writes.PerPod)
			}
			if p.Process != nil {
				cpu = append(cpu, p.Process.CPUSeconds)
			}
		}
		out[i] = report.Median{
			Workload: k.workload, DelaySeconds: k.delay, Phase: k.phase, Runs: len(seconds), Seconds: Spread(seconds),
			PerPod: median(perPod), CPUSeconds: median(cpu),
		}
	}
	return out
}

func median(all []float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	m := Spread(all).Median
	return &m
}
