// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/controllers/explain/serve"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/rank"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/record/sink"
	"github.com/regatta-sh/regatta/engine/shadow"
	"github.com/regatta-sh/regatta/nodeagent/containermeta"
	"github.com/regatta-sh/regatta/nodeagent/credentials"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/httpget"
	"github.com/regatta-sh/regatta/nodeagent/probes"
	"github.com/regatta-sh/regatta/nodeagent/restarts"
)

// bounded is what users can have a process keep at most.
type bounded struct {
	where string // the package, as the page names it; empty for the process itself
	bytes int
}

// What the processes take besides: the program, the caches of a small cluster, and garbage.
const (
	managerItself = 128 << 20
	agentItself   = 48 << 20
)

// outputs are those of decisionLogs: stdout, file and http.
const outputs = 3

// commandsAtOnce is how many commands, or requests by HTTP, containers are asked for at a time.
const commandsAtOnce = probes.AtOnce + restarts.StopsAtOnce + containermeta.StopsAtOnce

func TestWhatUsersHaveKeptIsUnderTheMemoryLimits(t *testing.T) {
	var values struct {
		Manager, Daemon struct {
			Resources struct{ Limits struct{ Memory string } }
		}
	}
	text, err := os.ReadFile("values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, limit, begins string
		all                 []bounded
	}{
		{"the manager", values.Manager.Resources.Limits.Memory, "The manager, limit `manager.resources.limits.memory`:", []bounded{
			{"engine/record", record.DefaultBytes},
			{"engine/record/sink", outputs * sink.DefaultBytes},
			{"engine/shadow", shadow.QueuedBytes},
			{"controllers/explain", explain.RefusalBytes},
			{"controllers/explain", explain.RoundBytes},
			{"controllers/explain/serve", 2 * serve.AnswersAtOnce * serve.LargestAnswer},
			{"controllers/explain/serve", 2 * 2 * serve.SinglesAtOnce * serve.LargestSingle},
			{"controllers/explain/replicas", 2 * replicas.PeerAnswersAtOnce * replicas.MostPeerAnswer},
			{"controllers/sidecarset/podmeta", podmeta.RememberedBytes},
			{"engine/rank", rank.DefaultBytes},
			{"engine/bundle/gate", gate.MostReport},
			{"engine", engine.DefaultTenantBytes},
			{"engine", engine.DefaultViewBytes},
			{"", managerItself},
		}},
		{"the node agent", values.Daemon.Resources.Limits.Memory, "The node agent, limit `daemon.resources.limits.memory`:", []bounded{
			{"nodeagent/cri", 2 * commandsAtOnce * cri.MostOutput},
			{"nodeagent/cri", 2 * cri.AnswersAtOnce * cri.MostAnswer},
			{"nodeagent/httpget", commandsAtOnce * (httpget.MostBody + httpget.MostHeaders)},
			{"nodeagent/credentials", credentials.MostRemembered * (4 << 10)},
			{"", agentItself},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			limit, err := resource.ParseQuantity(test.limit)
			if err != nil {
				t.Fatalf("reading the limit %q: %v", test.limit, err)
			}
			rows := tableAfter(string(page), test.begins)
			if len(rows) != len(test.all)+1 {
				t.Fatalf("the page has %d rows, want one for each of %d bounds and the sum", len(rows), len(test.all))
			}
			sum := 0
			for i, b := range test.all {
				mebibytes := (b.bytes + 1<<20 - 1) >> 20
				sum += mebibytes
				where := ""
				if b.where != "" {
					where = "`" + b.where + "`"
				}
				if rows[i][1] != where || rows[i][3] != fmt.Sprint(mebibytes) {
					t.Errorf("row %d is %q, want %s with %d MiB", i+1, rows[i], where, mebibytes)
				}
			}
			if last := rows[len(rows)-1]; last[0] != "Sum" || last[3] != fmt.Sprint(sum) {
				t.Errorf("the last row is %q, want the sum %d", last, sum)
			}
			if int64(sum)<<20 >= limit.Value() {
				t.Errorf("%d MiB together, and the limit is %s", sum, test.limit)
			}
		})
	}
}

// tableAfter are the cells of the table after a line, without its head.
func tableAfter(page, line string) (rows [][]string) {
	_, rest, _ := strings.Cut(page, line+"\n\n")
	for i, row := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(row, "|") {
			break
		}
		if i < 2 {
			continue
		}
		cells := strings.Split(strings.Trim(row, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		rows = append(rows, cells)
	}
	return rows
}
