// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/textcache"
)

// Entry is what a pod records of one SidecarSet, in the two annotations of hashes.
type Entry struct {
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	Hash            string      `json:"hash"`
	SidecarSetName  string      `json:"sidecarSetName"`
	SidecarList     []string    `json:"sidecarList"`
	// ControllerRevision is only in the annotation of the whole hash.
	ControllerRevision string `json:"controllerRevision,omitempty"`
}

// Entries are the entries of a pod by the name of the SidecarSet.
type Entries map[string]Entry

// RememberedBytes bounds how much memory the remembered Entries take together.
const RememberedBytes = 16 << 20

// remembered are the Entries of the texts that were read last. Each round of a SidecarSet reads all its pods, and pods that
// were created or updated within a second have the same text.
var remembered = textcache.New[Entries](textcache.Limits{Bytes: RememberedBytes, Text: 16 << 10})

// memorySize is how many bytes the Entries of a text take: their strings, which are parts of the text, the space in the map for each
// SidecarSet, with room for twice as many, and the space in a list for each container.
func (e Entries) memorySize(text string) int {
	out := len(text)
	for _, entry := range e {
		out += 512 + 32*len(entry.SidecarList)
	}
	return out
}

// Read reads one of the two annotations of hashes of a pod that the API server has. Very old releases wrote nothing but
// the hash of each SidecarSet. Other pods share the Entries, so the caller must not change them.
func Read(pod *corev1.Pod, key string) (Entries, error) {
	text, ok := pod.Annotations[key]
	if !ok {
		return Entries{}, nil
	}
	if known, ok := remembered.Get(text); ok {
		return known, nil
	}
	out, err := parseEntries(key, text)
	if err != nil {
		return nil, err
	}
	remembered.Add(text, out, out.memorySize(text))
	return out, nil
}

// readOnce does the same as Read for a pod that the API server may not have yet, or never has, as in a dry run. It remembers
// nothing.
func readOnce(pod *corev1.Pod, key string) (Entries, error) {
	text, ok := pod.Annotations[key]
	if !ok {
		return Entries{}, nil
	}
	return parseEntries(key, text)
}

func parseEntries(key, text string) (Entries, error) {
	out, err := annotation.Decode[Entries](key, text)
	if err == nil {
		return out, nil
	}
	old, errOld := annotation.Decode[map[string]string](key, text)
	if errOld != nil {
		return nil, err
	}
	out = Entries{}
	for name, hash := range old {
		out[name] = Entry{Hash: hash, SidecarSetName: name}
	}
	return out, nil
}

// Write writes one of the two annotations of hashes.
func (e Entries) Write(pod *corev1.Pod, key string) error { return WriteJSON(pod, key, e) }

// WriteJSON writes a value as JSON into an annotation.
func WriteJSON(pod *corev1.Pod, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing the annotation %s: %w", key, err)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, string(raw))
	return nil
}

// InjectionRecord is what a pod records when it gets the containers of a SidecarSet, or other images for them.
type InjectionRecord struct {
	Set      string
	Hashes   Hashes
	Revision string
	// Containers are the names in the SidecarSet of the containers that stay running.
	Containers []string
	Now        time.Time
}

// ContainersOf are the sorted names of the containers of a SidecarSet that stay running.
func ContainersOf(spec *kruise.SidecarSetSpec) []string {
	out := []string{}
	for i := range spec.Containers {
		out = append(out, spec.Containers[i].Name)
	}
	for i := range spec.InitContainers {
		if StaysRunning(&spec.InitContainers[i].Container) {
			out = append(out, spec.InitContainers[i].Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// AnnotatePod writes the record into a pod. An annotation that does not parse is replaced.
func (s InjectionRecord) AnnotatePod(pod *corev1.Pod) error {
	entry := Entry{UpdateTimestamp: metav1.NewTime(s.Now.UTC().Truncate(time.Second)), SidecarSetName: s.Set, SidecarList: s.Containers}
	bare := entry
	entry.Hash, entry.ControllerRevision, bare.Hash = s.Hashes.Hash, s.Revision, s.Hashes.WithoutImage
	if err := putEntry(pod, kruise.SidecarSetHashKey, entry); err != nil {
		return err
	}
	if known, err := readOnce(pod, kruise.SidecarSetHashWithoutImageKey); err == nil && known[s.Set].Hash == bare.Hash {
		return nil // the entry has the time of the last change of this hash
	}
	return putEntry(pod, kruise.SidecarSetHashWithoutImageKey, bare)
}

func putEntry(pod *corev1.Pod, key string, entry Entry) error {
	entries := Entries{}
	if known, err := readOnce(pod, key); err == nil {
		maps.Copy(entries, known)
	}
	entries[entry.SidecarSetName] = entry
	return entries.Write(pod, key)
}

// InjectedSets are the names of the SidecarSets whose containers a pod has.
func InjectedSets(pod *corev1.Pod) []string {
	return strings.FieldsFunc(pod.Annotations[kruise.SidecarSetInjectedListKey], func(r rune) bool { return r == ',' })
}

// AddInjected adds names to the InjectedSets of a pod.
func AddInjected(pod *corev1.Pod, names ...string) {
	all := map[string]bool{}
	for _, name := range append(InjectedSets(pod), names...) {
		all[name] = true
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.SidecarSetInjectedListKey, strings.Join(slices.Sorted(maps.Keys(all)), ","))
}

// WorkingContainers returns the working container of each hot pair, by the name in the SidecarSet. An annotation that does not parse
// counts as empty.
func WorkingContainers(pod *corev1.Pod) map[string]string {
	out, _ := annotation.Decode[map[string]string](kruise.SidecarSetWorkingHotUpgradeKey, pod.Annotations[kruise.SidecarSetWorkingHotUpgradeKey])
	return out
}

// SetWorking records which container of a pair works.
func SetWorking(pod *corev1.Pod, name, container string) error {
	working := WorkingContainers(pod)
	working[name] = container
	return WriteJSON(pod, kruise.SidecarSetWorkingHotUpgradeKey, working)
}

// SetVersions annotates a pod with the version of a container of a pair, and with the version of the other container.
func SetVersions(pod *corev1.Pod, container, version, alternate string) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.SidecarSetVersionPrefix+container, version)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.SidecarSetVersionAltPrefix+container, alternate)
}

// IsInjected reports whether a container is from a SidecarSet.
func IsInjected(container *corev1.Container) bool {
	return slices.ContainsFunc(container.Env, func(env corev1.EnvVar) bool {
		return env.Name == kruise.SidecarInjectedEnv && env.Value == "true"
	})
}
