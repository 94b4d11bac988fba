// SPDX-License-Identifier: Apache-2.0

// Package kubestatemetrics describes the metrics that kube-state-metrics makes of the objects of Regatta's kinds, and builds the
// settings for its Helm chart from that.
package kubestatemetrics

import "strings"

// A metricType is how kube-state-metrics makes series of the values at a path.
type metricType string

const (
	// gauge is one series with the number at the path, or one for each element of a list.
	gauge metricType = "Gauge"
	// info is a series of the value 1 with texts of the object as labels.
	info metricType = "Info"
	// stateSet is a series for each of a list of words, of the value 1 for the one at the path.
	stateSet metricType = "StateSet"
)

// A metric is what is measured of each object of a kind.
type metric struct {
	// name is without the prefix of the kind.
	name, help string
	kind       metricType
	// path is that of a field, with dots between its parts.
	path string
	// value is the path of the number or the word below path. It is "" if path leads to it.
	value string
	// labels are those of the series, with the paths of their values below path.
	labels map[string]string
	// states are the words of a stateSet, whose label has the name state.
	states []string
	state  string
	// zero makes a field that is absent a 0: the API leaves counts of zero out.
	zero bool
}

// newCount measures a number that is 0 if it is absent.
func newCount(name, path, help string) metric {
	return metric{name: name, help: help, kind: gauge, path: path, zero: true}
}

// newNumber measures a number, a time in seconds since 1970 or a percentage, which is 0.2 for 20%. There is no series if it is absent.
func newNumber(name, path, help string) metric {
	return metric{name: name, help: help, kind: gauge, path: path}
}

// newText makes a text the label of a series with the value 1.
func newText(name, path, label, help string) metric {
	return metric{name: name, help: help, kind: info, path: path, labels: map[string]string{label: ""}}
}

// newState measures which of some words a field is.
func newState(name, path, label, help string, states ...string) metric {
	return metric{name: name, help: help, kind: stateSet, path: path, state: label, states: states}
}

// newSubsetNumber measures a number of each subset in a list. If zero is true it is 0 where it is absent, and an object without the
// list, which its controller has not seen yet, has a 0 without a subset.
func newSubsetNumber(name, path, value, help string, zero bool) metric {
	return metric{name: name, help: help, kind: gauge, path: path, value: value, labels: map[string]string{"subset": "name"}, zero: zero}
}

// newContainerText makes a text of each container in a list the label of a series with the value 1.
func newContainerText(name, value, label, help string) metric {
	return metric{name: name, help: help, kind: info, path: "spec.containers", labels: map[string]string{"container": "name", label: value}}
}

// listCommon returns the metrics that every kind has: those of its metadata, and of its conditions.
func listCommon(generation string) []metric {
	return []metric{
		newNumber("created", "metadata.creationTimestamp", "When the object was created, in seconds since 1970."),
		newCount(generation, "metadata.generation", "The generation of the spec."),
		{name: "labels", help: "The labels of the object, each with `label_` before its name.", kind: info, path: "metadata.labels", labels: map[string]string{"label_*": ""}},
		{
			name: "status_condition", help: "Whether a condition is `True`, `False` or `Unknown`.", kind: stateSet, path: "status.conditions",
			value: "status", labels: map[string]string{"condition": "type"}, state: "status", states: []string{"True", "False", "Unknown"},
		},
	}
}

// buildPath returns the parts of a path. It is empty for "".
func buildPath(path string) []string {
	if path == "" {
		return []string{}
	}
	return strings.Split(path, ".")
}

// buildLabels returns the paths of the values of labels. There are none for nil.
func buildLabels(labels map[string]string) map[string][]string {
	out := map[string][]string{}
	for label, path := range labels {
		out[label] = buildPath(path)
	}
	return out
}
