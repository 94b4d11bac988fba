// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/engine/record"
)

// Labels that distinguish the pods of the chart.
const (
	plane        = "control-plane"
	managerPlane = "controller-manager"
	agentPlane   = "daemon"
)

// collectPods takes the pods of managers and agents, and returns those whose logs are wanted.
func (c *collector) collectPods(ctx context.Context) []corev1.Pod {
	const most = 2000
	byPlane := map[string][]corev1.Pod{}
	for _, of := range []string{managerPlane, agentPlane} {
		namespace := c.Namespace
		if of == agentPlane {
			namespace = c.namespaces[len(c.namespaces)-1]
		}
		c.eachObject(ctx, "pods/"+of, corev1.SchemeGroupVersion.WithKind("Pod"), most, func(o *unstructured.Unstructured) {
			pod := corev1.Pod{}
			if err := c.Scheme().Convert(o, &pod, nil); err != nil {
				c.archive.recordOmission("pods/"+o.GetName(), err.Error())
				return
			}
			c.archive.scrub.addPublic(pod.Spec.NodeName)
			byPlane[of] = append(byPlane[of], pod)
			if of == managerPlane || len(byPlane[of]) <= 4*max(c.Agents, 1) || !availability.HasReadyCondition(&pod) {
				text, err := c.archive.scrub.maskObject(o.Object)
				c.archive.addText("pods/"+pod.Name+".json", text, err)
			}
		}, client.InNamespace(namespace), client.MatchingLabels{plane: of})
	}
	agents := byPlane[agentPlane]
	slices.SortStableFunc(agents, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(boolOf(availability.HasReadyCondition(&a)), boolOf(availability.HasReadyCondition(&b))), cmp.Compare(restartsOf(&b), restartsOf(&a)))
	})
	if len(agents) > c.Agents {
		c.archive.recordOmission("logs of agents", fmt.Sprintf("%d of %d are taken, by --agents", c.Agents, len(agents)))
		agents = agents[:c.Agents]
	}
	return append(byPlane[managerPlane], agents...)
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func restartsOf(pod *corev1.Pod) (n int32) {
	for _, s := range pod.Status.ContainerStatuses {
		n += s.RestartCount
	}
	return n
}

// collectSecrets takes the names and types of the secrets of the manager's namespace. The API server is asked for a table without objects,
// so that contents are never sent.
func (c *collector) collectSecrets(ctx context.Context) {
	const name = "secrets.txt"
	var raw []byte
	err := c.askServer(ctx, func(ctx context.Context) (err error) {
		raw, err = c.core.CoreV1().RESTClient().Get().Namespace(c.Namespace).Resource("secrets").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Param("includeObject", "None").Param("limit", "500").Do(ctx).Raw()
		return err
	})
	if err != nil {
		c.omitFailed(name, err)
		return
	}
	table := metav1.Table{}
	if err := json.Unmarshal(raw, &table); err != nil || table.Kind != "Table" {
		c.archive.recordOmission(name, "the API server sends no table")
		return
	}
	column := func(name string) int {
		return slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return d.Name == name })
	}
	var out strings.Builder
	at, of := column("Name"), column("Type")
	for _, row := range table.Rows {
		if at >= 0 && of >= 0 && at < len(row.Cells) && of < len(row.Cells) {
			fmt.Fprintf(&out, "%v  %v\n", row.Cells[at], row.Cells[of])
		}
	}
	c.archive.addText(name, []byte(out.String()), nil)
}

// event has the fields of an event that are kept.
type event struct {
	Last      time.Time `json:"last"`
	Type      string    `json:"type"`
	Object    string    `json:"object"`
	Namespace string    `json:"namespace"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Count     int32     `json:"count"`
	Source    string    `json:"source"`
}

// collectEvents collects the events of the namespaces of the manager and its agents, and events about objects of Regatta's kinds and about
// objects that these create.
func (c *collector) collectEvents(ctx context.Context) {
	const most = 5000
	gvk := corev1.SchemeGroupVersion.WithKind("Event")
	c.keepEvents(ctx, "events/manager.json", func(take func(*unstructured.Unstructured)) {
		for _, namespace := range c.namespaces {
			c.eachObject(ctx, "events/manager.json", gvk, most, take, client.InNamespace(namespace))
		}
	}, func(*corev1.Event) bool { return true })
	c.keepEvents(ctx, "events/objects.json", func(take func(*unstructured.Unstructured)) {
		c.eachObject(ctx, "events/objects.json", gvk, most, take, client.InNamespace(c.Only))
	}, func(e *corev1.Event) bool {
		group, _, _ := strings.Cut(e.InvolvedObject.APIVersion, "/")
		_, ours := preflight.CRDResource("x." + group)
		return !slices.Contains(c.namespaces, e.Namespace) && (ours || strings.Contains(e.Source.Component+e.ReportingController, "kruise"))
	})
}

func (c *collector) keepEvents(_ context.Context, name string, list func(func(*unstructured.Unstructured)), wanted func(*corev1.Event) bool) {
	out := []event{}
	list(func(o *unstructured.Unstructured) {
		e := &corev1.Event{}
		if err := c.Scheme().Convert(o, e, nil); err != nil {
			c.archive.recordOmission(name, err.Error())
			return
		}
		if wanted(e) {
			last := e.LastTimestamp.Time
			if last.IsZero() {
				last = e.EventTime.Time
			}
			out = append(out, event{last, e.Type, e.InvolvedObject.Kind + " " + e.InvolvedObject.Name, e.Namespace, e.Reason, e.Message, e.Count, cmp.Or(e.Source.Component, e.ReportingController)})
		}
	})
	slices.SortFunc(out, func(a, b event) int { return b.Last.Compare(a.Last) })
	const kept = 1000
	if len(out) > kept {
		c.archive.recordOmission(name, fmt.Sprintf("the latest %d of %d are kept", kept, len(out)))
		out = out[:kept]
	}
	c.archive.addDocument(name, out)
}

// collectLogs takes the ends of logs, also of the containers before a restart.
func (c *collector) collectLogs(ctx context.Context, pods []corev1.Pod) {
	for n := range pods {
		pod := &pods[n]
		restarts := map[string]int32{}
		for _, s := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
			restarts[s.Name] = s.RestartCount
		}
		for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
			c.collectLog(ctx, pod, container.Name, false)
			if restarts[container.Name] > 0 {
				c.collectLog(ctx, pod, container.Name, true)
			}
		}
	}
}

func (c *collector) collectLog(ctx context.Context, pod *corev1.Pod, container string, previous bool) {
	name := "logs/" + pod.Name + "/" + container
	if previous {
		name += ".previous"
	}
	name += ".log"
	if c.LogBytes == 0 {
		c.archive.recordOmission(name, "--log-bytes is 0")
		return
	}
	lines := int64(50_000) // more lines than are kept
	end := &tail{most: int(c.LogBytes)}
	err := c.askServer(ctx, func(ctx context.Context) error {
		from, err := c.core.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}).Stream(ctx)
		if err != nil {
			return err
		}
		_, err = io.Copy(end, io.LimitReader(from, 64<<20))
		return errors.Join(err, from.Close())
	})
	if err != nil {
		c.omitFailed(name, err)
		if len(end.kept) == 0 {
			return
		}
	}
	if end.dropped {
		c.archive.recordOmission(name, fmt.Sprintf("all but the last %d bytes, by --log-bytes", c.LogBytes))
	}
	c.archive.addFile(name, c.archive.scrub.maskLog(end.keptBytes()))
}

// tail is a writer that keeps the end of what is written.
type tail struct {
	most    int
	kept    []byte
	dropped bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.most {
		t.dropOldest()
	}
	return len(p), nil
}

func (t *tail) dropOldest() {
	if over := len(t.kept) - t.most; over > 0 {
		t.kept, t.dropped = append([]byte{}, t.kept[over:]...), true
	}
}

// keptBytes returns the whole lines at the end: a part of a line may be a part of a secret that is not
// recognized without the rest.
func (t *tail) keptBytes() []byte {
	t.dropOldest()
	if !t.dropped {
		return t.kept
	}
	_, rest, found := bytes.Cut(t.kept, []byte("\n"))
	if !found {
		return nil
	}
	return rest
}

// collectMetrics takes the metrics of the managers, through the API server.
func (c *collector) collectMetrics(ctx context.Context, pods []corev1.Pod) {
	for n := range pods {
		pod := &pods[n]
		if pod.Labels[plane] != managerPlane {
			continue
		}
		port := ""
		for _, container := range pod.Spec.Containers {
			for _, p := range container.Ports {
				if p.Name == "metrics" {
					port = strconv.Itoa(int(p.ContainerPort))
				}
			}
		}
		name := "metrics/" + pod.Name + ".txt"
		var raw []byte
		err := c.askServer(ctx, func(ctx context.Context) (err error) {
			raw, err = readBounded(ctx, c.core.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name+":"+port).SubResource("proxy").Suffix("metrics"))
			return err
		})
		if err != nil {
			c.omitFailed(name, err)
			continue
		}
		c.archive.addText(name, c.archive.scrub.maskLog(raw), nil)
	}
}

// readBounded reads at most as many bytes of a response as a file may have, plus one.
func readBounded(ctx context.Context, request *rest.Request) ([]byte, error) {
	from, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(from, mostOfFile+1))
	return text, errors.Join(err, from.Close())
}

// collectDecisions takes the latest decisions, which managers mask, and masks them again.
func (c *collector) collectDecisions(ctx context.Context) {
	const name = "decisions.jsonl"
	if c.Decisions == 0 {
		c.archive.recordOmission(name, "--decisions is 0")
		return
	}
	records, warnings, err := c.asker.FetchDecisions(ctx, managers.Decisions{Namespace: c.Only, Limit: c.Decisions})
	for _, w := range warnings {
		c.archive.recordOmission(name, w.Error())
	}
	if err != nil {
		c.archive.recordOmission(name, err.Error())
		return
	}
	records = records[max(0, len(records)-c.Decisions):]
	var out bytes.Buffer
	for n := len(records) - 1; n >= 0; n-- { // the latest first
		var line bytes.Buffer
		if err := record.Write(&line, records[n:n+1]); err != nil {
			c.archive.recordOmission(name, err.Error())
			continue
		}
		text := c.archive.scrub.maskDecision(line.Bytes())
		if out.Len()+len(text) >= mostOfFile {
			c.archive.recordOmission(name, fmt.Sprintf("the latest %d of %d are kept", len(records)-1-n, len(records)))
			break
		}
		out.WriteString(text)
		out.WriteByte('\n')
	}
	c.archive.addText(name, out.Bytes(), nil)
}
