// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/record/mask"
)

// scrubber masks the contents of an archive. A text that it hides in an object it hides everywhere else too, such as in a log. So all
// objects are scrubbed first, and the hidden texts are replaced in all files at the end.
type scrubber struct {
	line *mask.Line
	// hidden are texts that must not appear anywhere. public are texts that may appear although they were hidden somewhere: names, and the
	// values that the chart itself sets for its programs.
	hidden, public map[string]bool
	// own is true for objects of the chart, whose arguments are known.
	own bool
}

// distinctive is how long a hidden text must be to be hidden elsewhere too: a shorter text may occur by chance.
const distinctive = 6

func newScrubber() (*scrubber, error) {
	m, err := mask.New()
	if err != nil {
		return nil, err
	}
	return &scrubber{line: m.BeginLine(), hidden: map[string]bool{}, public: map[string]bool{}}, nil
}

func (s *scrubber) addHidden(text string) {
	if len(text) >= distinctive && text != mask.Text && !instead.MatchString(text) {
		s.hidden[text] = true
	}
}

// addPublic says that a text is no secret, though an environment variable may have it as its value.
func (s *scrubber) addPublic(texts ...string) {
	for _, text := range texts {
		s.public[text] = true
	}
}

// maskDocument scrubs a value of decoded JSON, and writes it as JSON.
func (s *scrubber) maskDocument(value any) ([]byte, error) {
	text, err := json.Marshal(s.maskValue(value, nil))
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	masked := s.line.MaskJSON("input", text)
	masked = []byte(restore.Replace(string(masked)))
	var out bytes.Buffer
	if err := json.Indent(&out, masked, "", "  "); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// maskObject scrubs an object of the API.
func (s *scrubber) maskObject(o map[string]any) ([]byte, error) {
	o = maps.Clone(o)
	meta, _ := o["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace", "uid"} {
		if text, ok := meta[field].(string); ok {
			s.addPublic(text)
		}
	}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		if values, ok := o[field].(map[string]any); ok {
			o[field] = sizesOf(values)
		}
	}
	if o["kind"] == "ResourceDistribution" { // it may hold a Secret
		if spec, ok := o["spec"].(map[string]any); ok {
			spec = maps.Clone(spec)
			spec["resource"] = withoutContents(spec["resource"])
			o["spec"] = spec
		}
	}
	return s.maskDocument(o)
}

// withoutContents returns only the metadata that names an object.
func withoutContents(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return leftOut(fmt.Sprint(v))
	}
	meta, _ := o["metadata"].(map[string]any)
	return map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": map[string]any{"name": meta["name"]}}
}

// sizesOf says how long values are, by their keys.
func sizesOf(values map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range values {
		text, _ := v.(string)
		out[key] = leftOut(text)
	}
	return out
}

// instead matches the texts that replace something that was left out.
var instead = regexp.MustCompile(`^(\[(left out: [0-9]+ bytes|left out: no certificate|certificate of [^\]]*)[^\]]*\] ?)+$`)

func leftOut(text string) string { return fmt.Sprintf("[left out: %d bytes]", len(text)) }

// maskValue scrubs a value depending on its place: path are the names of the fields above it, without the
// indices of lists.
func (s *scrubber) maskValue(v any, path []string) any {
	name := ""
	if len(path) > 0 {
		name = path[len(path)-1]
	}
	switch v := v.(type) {
	case map[string]any:
		return s.maskFields(v, name, path)
	case []any:
		if name == "args" || name == "command" {
			return s.maskArguments(v)
		}
		out := make([]any, len(v))
		for n := range v {
			if text := readText(v[n]); n > 0 && isFlagAlone(v[n-1]) && !strings.HasPrefix(text, "--") {
				s.addHidden(text)
				out[n] = mask.Text
				continue
			}
			out[n] = s.maskValue(v[n], path)
		}
		return out
	case string:
		if name == "caBundle" {
			return describeCertificates(v)
		}
		return s.markSecrets(v)
	}
	return v
}

func (s *scrubber) maskFields(o map[string]any, name string, path []string) any {
	if name == "files" && len(path) > 1 && path[len(path)-2] == "spec" { // of a policy bundle
		return digestsOf(o)
	}
	out := map[string]any{}
	for key, v := range o {
		switch {
		case key == "managedFields":
		case name == "annotations":
			out[key] = s.maskAnnotation(key, v)
		case name == "httpHeaders" && key == "value" || name == "env" && key == "value":
			s.hideEnv(o)
			out[key] = mask.Text
		case key == "value" && isVariable(readText(o["name"]), "", readText(v)):
			s.addHidden(readText(v))
			out[key] = mask.Text
		case o["kind"] == "Secret" && (key == "data" || key == "stringData"):
			out[key] = s.hideContents(v)
		default:
			out[key] = s.maskValue(v, append(slices.Clone(path), key))
		}
	}
	return out
}

// readText returns a value if it is a text, and otherwise an empty one.
func readText(v any) string {
	text, _ := v.(string)
	return text
}

// hideContents hides the contents of a Secret.
func (s *scrubber) hideContents(v any) any {
	values, ok := v.(map[string]any)
	if !ok {
		return leftOut(readText(v))
	}
	for _, value := range values {
		s.addHidden(readText(value))
	}
	return sizesOf(values)
}

// hideEnv hides the value of an environment variable or a header, except of the variables that the chart sets for
// its programs.
func (s *scrubber) hideEnv(variable map[string]any) {
	value, _ := variable["value"].(string)
	name, _ := variable["name"].(string)
	if slices.Contains([]string{"WEBHOOK_PORT", "WEBHOOK_CERT_DIR", "WEBHOOK_HOST", "GOMEMLIMIT", "KUBE_CACHE_MUTATION_DETECTOR", "CUSTOM_RESOURCE_ENABLE", "DAEMON_NAMESPACE"}, name) {
		s.addPublic(value)
		return
	}
	s.addHidden(value)
}

// digestsOf replaces the files of a policy bundle with their digests, so that two bundles can be compared: their data may
// have secrets.
func digestsOf(files map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range files {
		text, _ := v.(string)
		out[name] = fmt.Sprintf("[left out: %d bytes, sha256:%x]", len(text), sha256.Sum256([]byte(text)))
	}
	return out
}

// mostOfAnnotation is how many bytes of an annotation are kept.
const mostOfAnnotation = 1024

// maskAnnotation keeps annotations of Kubernetes, Helm, OpenKruise and Regatta. The contents of other annotations are
// not known.
func (s *scrubber) maskAnnotation(key string, v any) any {
	text, ok := v.(string)
	domain, _, _ := strings.Cut(key, "/")
	known := slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "helm.sh", "kruise.io", "regatta.sh", "cert-manager.io"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
	switch {
	case !ok || !known || key == "kubectl.kubernetes.io/last-applied-configuration":
		return leftOut(text)
	case len(text) > mostOfAnnotation:
		return leftOut(text)
	}
	return s.markSecrets(text)
}

// plainFlags are the flags of the manager and the agent whose values are no secrets.
func plainFlags() []string {
	return []string{"feature-gates", "v", "logging-format", "enable-leader-election", "leader-election-namespace", "leader-election-id", "metrics-addr", "health-probe-addr", "decisions-addr",
		"decisions-api-service", "policy-dir", "webhook-timeout-seconds", "pod-failure-policy", "sync-period", "addr", "enable-pprof", "pprof-addr", "socket-file", "rest-config-qps", "rest-config-burst",
		"tenant-bundle-hosts"}
}

// maskArguments keeps the names of flags, and the values of a few flags of the chart's own programs. Other values, and arguments that are no
// flags, may be secrets.
func (s *scrubber) maskArguments(list []any) []any {
	out := make([]any, len(list))
	for n, v := range list {
		text, _ := v.(string)
		out[n] = s.maskArgument(text, n == 0)
	}
	return out
}

func (s *scrubber) maskArgument(text string, first bool) string {
	name, value, assigned := strings.Cut(text, "=")
	plain := strings.TrimLeft(name, "-")
	flag := flagName(plain)
	switch {
	case s.own && first && strings.HasPrefix(text, "/"): // a program
		return text
	case s.own && strings.HasPrefix(text, "--") && assigned && (slices.Contains(plainFlags(), plain) || strings.HasSuffix(plain, "-workers")) && !mask.LooksSecret(text):
		return text
	case !assigned && flag == plain && (strings.HasPrefix(text, "--") || len(text) == 2 && text[0] == '-'):
		return text
	}
	s.addHidden(text)
	if !assigned || flag != plain || !strings.HasPrefix(text, "--") { // -pVALUE has one, too
		return mask.Text
	}
	s.addHidden(value)
	return name + "=" + mask.Text
}

// flagName is the part of an argument that can be the name of a flag.
func flagName(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// describeCertificates returns the subjects and expiry dates of the certificates in a caBundle; all other contents
// are left out.
func describeCertificates(encoded string) string {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		raw = []byte(encoded)
	}
	var out []string
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			out = append(out, "[left out: no certificate]")
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, fmt.Sprintf("[certificate of %d bytes, valid from %s to %s]", len(block.Bytes), c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	if len(out) == 0 {
		return leftOut(encoded)
	}
	return strings.Join(out, " ")
}
