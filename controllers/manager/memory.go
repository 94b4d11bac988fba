// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"io/fs"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/cgroup"
	"github.com/regatta-sh/regatta/engine/rank"
)

// Parts of the container's memory that the places of pods and the explanations of decisions may take. With the chart's
// limit of 512 MiB they give the defaults, and they grow with the limit, as the cache of pods does.
const (
	rankPart  = 32
	roundPart = 32
)

// rememberedBytes is how many bytes the places of the pods of all workloads may take, and the explanations of all workloads.
func rememberedBytes(files fs.FS) (ranks, rounds int) {
	return cgroup.PartOfMemory(files, rankPart, rank.DefaultBytes), cgroup.PartOfMemory(files, roundPart, explain.RoundBytes)
}
