// SPDX-License-Identifier: Apache-2.0

// Package inplace brings a pod from one template to another without recreating
// it. rollout/change decides what may be changed in place;
// this package computes the differences, and applies them.
package inplace

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Difference has the differences between two templates: their classes for the
// policy, and the values for the update.
type Difference struct {
	Changes  []points.TemplateChange
	Old, New *corev1.PodTemplateSpec

	images    map[string]string
	resources map[string]corev1.ResourceRequirements
	metadata  []jsonpatch.Operation
}

// templatePaths holds the patterns of the template paths that have a class of their own.
type templatePaths struct{ image, resource *regexp.Regexp }

// Classifier computes the differences between revisions.
type Classifier struct{ paths templatePaths }

// NewClassifier makes a Classifier.
func NewClassifier() *Classifier {
	return &Classifier{templatePaths{
		image:    regexp.MustCompile(`^/spec/containers/([0-9]+)/image$`),
		resource: regexp.MustCompile(`^/spec/containers/([0-9]+)/resources/(limits|requests)/(cpu|memory)$`),
	}}
}

// CompareRevisions classifies each operation of the JSON patch from one revision's
// template to another's (A-01, rule 3).
func (c *Classifier) CompareRevisions(from, to *appsv1.ControllerRevision) (Difference, error) {
	d := Difference{images: map[string]string{}, resources: map[string]corev1.ResourceRequirements{}}
	var err error
	if d.Old, err = revision.DecodeTemplate(from); err != nil {
		return d, err
	}
	if d.New, err = revision.DecodeTemplate(to); err != nil {
		return d, err
	}
	a, err := json.Marshal(d.Old)
	if err != nil {
		return d, fmt.Errorf("encoding template of %s: %w", from.Name, err)
	}
	b, err := json.Marshal(d.New)
	if err != nil {
		return d, fmt.Errorf("encoding template of %s: %w", to.Name, err)
	}
	ops, err := jsonpatch.CreatePatch(a, b)
	if err != nil {
		return d, fmt.Errorf("comparing templates of %s and %s: %w", from.Name, to.Name, err)
	}
	for _, op := range ops {
		d.Changes = append(d.Changes, c.classifyOperation(&d, op))
	}
	return d, nil
}

func (c *Classifier) classifyOperation(d *Difference, op jsonpatch.Operation) points.TemplateChange {
	change := points.TemplateChange{Class: points.ChangeOther, Op: op.Operation, Path: op.Path}
	if strings.HasPrefix(op.Path, "/metadata/") {
		change.Class = points.ChangeMetadata
		d.metadata = append(d.metadata, op)
		return change
	}
	value, isString := op.Value.(string)
	if op.Operation != "replace" || !isString {
		return change
	}
	if m := c.paths.image.FindStringSubmatch(op.Path); m != nil {
		if name := containerAt(d.Old, m[1]); name != "" {
			change.Class, change.Container = points.ChangeImage, name
			d.images[name] = value
		}
		return change
	}
	if m := c.paths.resource.FindStringSubmatch(op.Path); m != nil {
		name := containerAt(d.Old, m[1])
		quantity, err := resource.ParseQuantity(value)
		if name == "" || err != nil {
			return change
		}
		change.Class, change.Container = points.ChangeResources, name
		d.resources[name] = withResource(d.resources[name], containerByName(d.New.Spec.Containers, name), m[2], corev1.ResourceName(m[3]), quantity)
	}
	return change
}

// RestartedAtKey is the annotation of a template by which kubectl rollout restart asks for new pods. Its value is a
// time as in RFC 3339.
const RestartedAtKey = "kubectl.kubernetes.io/restartedAt"

// RequestsRestart reports whether the new template asks for new pods and the old one did not yet. A template that goes
// back to an earlier time asks for nothing.
func (d Difference) RequestsRestart() bool {
	requested, err := time.Parse(time.RFC3339, d.New.Annotations[RestartedAtKey])
	if err != nil {
		return false
	}
	before, err := time.Parse(time.RFC3339, d.Old.Annotations[RestartedAtKey])
	return err != nil || requested.After(before)
}

func containerAt(t *corev1.PodTemplateSpec, index string) string {
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(t.Spec.Containers) {
		return ""
	}
	return t.Spec.Containers[i].Name
}

// EnvRefresh returns the containers of the new template whose env reads a label or an
// annotation that was added or replaced (A-01, rule 5), with what they read.
func (d Difference) EnvRefresh() map[string]Metadata {
	changed := d.changedMetadata()
	refs := map[string]Metadata{}
	for _, c := range d.New.Spec.Containers {
		read := Metadata{}
		for _, e := range c.Env {
			if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
				continue
			}
			kind, key, ok := runtimemeta.FieldRef(e.ValueFrom.FieldRef.FieldPath)
			if !ok {
				continue
			}
			if value, ok := changed.getEntry(kind, key); ok {
				read.setEntry(kind, key, value)
			}
		}
		if !read.isEmpty() {
			refs[c.Name] = read
		}
	}
	return refs
}

// changedMetadata returns the labels and annotations that were added or replaced
// one by one. Adding the first label or annotation changes the whole map, and is not included.
func (d Difference) changedMetadata() Metadata {
	out := Metadata{}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, op := range d.metadata {
		value, isString := op.Value.(string)
		parts := strings.Split(op.Path, "/") // "", metadata, labels, key
		if len(parts) != 4 || !isString || op.Operation == "remove" {
			continue
		}
		if kind := parts[2]; kind == labels || kind == annotations {
			out.setEntry(kind, unescape.Replace(parts[3]), value)
		}
	}
	return out
}
