// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PolicySource is where the policies are from: exactly one of its fields is set.
type PolicySource struct {
	// Files are the bundle: text by path. A path ends with .rego for a policy or a test, or with .json, .yaml or .yml for
	// data; it is relative and has no dot segments, so that an error names one file only.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(path, size(path) <= 256)",message="A path has at most 256 characters."
	// +kubebuilder:validation:XValidation:rule="self.all(path, path.endsWith('.rego') || path.endsWith('.json') || path.endsWith('.yaml') || path.endsWith('.yml'))",message="A path ends with .rego, .json, .yaml or .yml."
	// +kubebuilder:validation:XValidation:rule="self.all(path, path.matches('^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$'))",message="A path is relative, of letters, digits, underscores, dots and dashes, and no part of it begins with a dot."
	// +kubebuilder:validation:XValidation:rule="self.map(path, size(self[path])).sum() <= 1000000",message="All files together have at most 1000000 characters."
	// +optional
	Files map[string]FileText `json:"files,omitempty"`

	// ConfigMap has the policies as text, or as a bundle.tar.gz.
	// +optional
	ConfigMap *ConfigMapPolicySource `json:"configMap,omitempty"`

	// OCI is an artifact in a registry, as regatta policy push and oras push make it.
	// +optional
	OCI *OCIPolicySource `json:"oci,omitempty"`

	// HTTP is a bundle.tar.gz on a server.
	// +optional
	HTTP *HTTPPolicySource `json:"http,omitempty"`
}

// FileText is what stands in one file.
//
// +kubebuilder:validation:MaxLength=262144
type FileText string

// ConfigMapPolicySource is a ConfigMap beside a PolicyBundle or, for a ClusterPolicyBundle, in the namespace of the manager.
// Its keys are files; before __data.json, .yaml or .yml two underscores stand for a slash, e.g. extend__rollout__freeze__data.json.
// The key bundle.tar.gz of binaryData is a whole bundle instead.
type ConfigMapPolicySource struct {
	// Name of the ConfigMap.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// OCIPolicySource is an artifact in a registry.
type OCIPolicySource struct {
	// Reference names the artifact, by digest (registry.example/team/freeze@sha256:...) or by tag (registry.example/team/freeze:v2).
	// A tag is resolved to a digest, again at each interval.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reference string `json:"reference"`

	// Interval is how often a tag is looked up.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="An interval is 10s at least."
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// PullSecrets are Secrets of type kubernetes.io/dockerconfigjson beside a PolicyBundle or, for a ClusterPolicyBundle, in the
	// namespace of the manager.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	PullSecrets []PolicySecretReference `json:"pullSecrets,omitempty"`

	// Insecure talks to the registry without TLS, also with credentials.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// CABundle are the certificates, as PEM, that the registry's is checked with, in place of those of the system.
	//
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// HTTPPolicySource is a bundle.tar.gz on a server.
type HTTPPolicySource struct {
	// URL of the bundle.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern="^https?://[^/?#@ ]+(/.*)?$"
	URL string `json:"url"`

	// Interval is how often the server is asked whether there is another. It answers 304 to an ETag that it gave before.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="An interval is 10s at least."
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Secret has the credentials, with the key token, or with the keys username and password.
	// +optional
	Secret *PolicySecretReference `json:"secret,omitempty"`

	// CABundle are the certificates, as PEM, that the server's is checked with, in place of those of the system.
	//
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// PolicySecretReference names a Secret.
type PolicySecretReference struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PolicyVerification says whose signature a bundle must have. A bundle that has none, or another's, is refused.
type PolicyVerification struct {
	// Keys are those whose signatures count.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=id
	Keys []PolicyKey `json:"keys"`

	// KeyID is the key that must have signed, whatever a signature says. If it is empty any of the keys may have.
	//
	// +kubebuilder:validation:MaxLength=256
	// +optional
	KeyID string `json:"keyID,omitempty"`

	// Scope is what a signature must have been made for (opa sign --claims-file, the claim scope).
	//
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Scope string `json:"scope,omitempty"`
}

// PolicyKey is a public key.
type PolicyKey struct {
	// ID names the key, as the signature does. Where there is one key only it counts whatever a signature says.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id"`

	// PublicKey is the key as PEM: PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.startsWith('-----BEGIN ') && !self.contains('PRIVATE KEY')",message="A public key is PEM that begins with -----BEGIN PUBLIC KEY-----; a private key stays with who signs."
	PublicKey string `json:"publicKey"`

	// Algorithm is one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA. It follows from the key if it is empty.
	//
	// +kubebuilder:validation:Enum=RS256;RS384;RS512;PS256;PS384;PS512;ES256;ES384;ES512;EdDSA
	// +optional
	Algorithm string `json:"algorithm,omitempty"`
}
