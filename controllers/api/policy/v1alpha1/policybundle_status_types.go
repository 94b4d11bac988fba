// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PolicyBundleStatus is what became of a bundle. The leader writes it, but for replicas, where each replica has its own entry.
type PolicyBundleStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ActiveRevision is what is being enforced. It stays at the last good revision if a newer one fails.
	// +optional
	ActiveRevision string `json:"activeRevision,omitempty"`

	// LastActivationTime is when ActiveRevision became active.
	// +optional
	LastActivationTime *metav1.Time `json:"lastActivationTime,omitempty"`

	// Fetched is what the source had when it was looked at last.
	// +optional
	Fetched *FetchedPolicy `json:"fetched,omitempty"`

	// Checking is the check of the newest files that waits or is under way. It is gone when the check has ended.
	// +optional
	Checking *PolicyCheck `json:"checking,omitempty"`

	// Active is what every replica enforces, but for the namespaces of a canary.
	// +optional
	Active *PolicyArtifact `json:"active,omitempty"`

	// Candidate is what every replica has in shadow or, in the namespaces of a canary, enforces.
	// +optional
	Candidate *PolicyArtifact `json:"candidate,omitempty"`

	// Withheld was enforced until it was rolled back, and there is nothing that could be enforced in its place. Whatever it takes
	// part in is refused or held, until the files of the bundle or its mode change or the bundle is deleted.
	// +optional
	Withheld *PolicyArtifact `json:"withheld,omitempty"`

	// History is what was enforced before, the latest first. These revisions are kept, so spec.rollbackTo can name them.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	History []PolicyArtifact `json:"history,omitempty"`

	// Errors are why the newest policies did not pass the gate, each as "file:row:col code message".
	// +listType=atomic
	// +optional
	Errors []string `json:"errors,omitempty"`

	// Replicas are those that decide, and what they run.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Replicas []PolicyReplica `json:"replicas,omitempty"`

	// Revisions is how many replicas enforce which revision.
	// +listType=map
	// +listMapKey=revision
	// +optional
	Revisions []PolicyRevisionCount `json:"revisions,omitempty"`

	// Conditions are Fetched, Verified, Compiled, ContractOK, TestsPassed, ReplayOK and Active, a stage of the gate each, and
	// Ready, which is the first of them that is not True.
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// PolicyCheckPhase says how far a check is.
// +kubebuilder:validation:Enum=Waiting;Running;GivenUp
type PolicyCheckPhase string

const (
	// PolicyCheckWaiting is of a check that begins when those of other bundles have ended: there is one at a time.
	PolicyCheckWaiting PolicyCheckPhase = "Waiting"
	// PolicyCheckRunning is of a check that is under way, or was when the manager ended.
	PolicyCheckRunning PolicyCheckPhase = "Running"
	// PolicyCheckGivenUp is of a check that is not begun any more, since it never ended.
	PolicyCheckGivenUp PolicyCheckPhase = "GivenUp"
)

// PolicyCheck is written before a check begins, so that the next leader knows of a check that ended the manager.
type PolicyCheck struct {
	// Phase is Waiting, Running or GivenUp.
	Phase PolicyCheckPhase `json:"phase"`
	// Digest is that of the archive.
	Digest string `json:"digest"`
	// Generation is that of the spec.
	Generation int64 `json:"generation"`
	// Begun is how often the check of this archive and this spec was begun.
	// +optional
	Begun int32 `json:"begun,omitempty"`
	// Message says what a check waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// Time is when it began to wait or to run.
	Time metav1.Time `json:"time"`
}

// FetchedPolicy is what a source had.
type FetchedPolicy struct {
	// Reference names what was fetched and nothing else, such as an artifact by its digest.
	Reference string `json:"reference"`
	// Digest is that of the archive, e.g. sha256:....
	Digest string `json:"digest"`
	// Revision is a hash of the content; it is missing if this cannot be read.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Time is when it was first seen.
	Time metav1.Time `json:"time"`
}

// PolicyArtifact is one revision of a bundle, which has passed the gate.
type PolicyArtifact struct {
	// Revision is the beginning of Content. It names the revision among those of the bundle, as regatta why does.
	Revision string `json:"revision"`
	// Content is the SHA-256 of the content, in hexadecimal, however it is packed. Records have all of it.
	// +optional
	Content string `json:"content,omitempty"`
	// Digest is that of the archive, e.g. sha256:.... Every replica checks it.
	Digest string `json:"digest"`
	// Reference is where it was fetched.
	Reference string `json:"reference"`
	// KeptIn is the ControllerRevision that has the archive.
	KeptIn string `json:"keptIn"`
	// Sequence is the one of the bundle's manifest.
	// +optional
	Sequence *int64 `json:"sequence,omitempty"`
	// Generation is the one of the spec by which it was let in.
	Generation int64 `json:"generation"`
	// Mode is Shadow or Canary for a candidate.
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`
	// Namespaces are those of a canary.
	//
	// +listType=set
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// Points are the decision points, and rules of them, that it takes part in. A replica that cannot run it answers these
	// with their strict fallbacks. Where there are none here these are all that a bundle of its kind may take part in.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Points []string `json:"points,omitempty"`
	// Time is when it was let in.
	Time metav1.Time `json:"time"`
}

// PolicyReplica is what one replica of the manager runs.
type PolicyReplica struct {
	// Name of the pod, or of the host outside of one.
	Name string `json:"name"`
	// Revision that it enforces.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Candidate is the revision that it has in shadow or as a canary.
	// +optional
	Candidate string `json:"candidate,omitempty"`
	// RolledBack is the content of a revision that it gave up because decisions did not end in time with it.
	// +optional
	RolledBack string `json:"rolledBack,omitempty"`
	// Problem is why it does not run what status.active and status.candidate say.
	// +optional
	Problem string `json:"problem,omitempty"`
	// Strict is why this replica cannot run status.active, or the canary, nor another revision in its place. It answers the
	// points that the revision takes part in with their strict fallbacks, which hold and refuse, until it can. It is NotLoaded,
	// SignatureRevoked or EndsProcess.
	// +optional
	Strict string `json:"strict,omitempty"`
	// Shadow is how decisions of the candidate compare with those that are carried out.
	// +optional
	Shadow *PolicyShadow `json:"shadow,omitempty"`
}

// PolicyShadow counts the decisions that a shadow made beside those that were carried out.
type PolicyShadow struct {
	// Since is when counting began: when the candidate, or what is enforced of this bundle, was another last. The other
	// bundles may have changed meanwhile; each decision is compared with the one that was carried out at the time.
	Since metav1.Time `json:"since"`
	// Compared is how many decisions were made twice.
	Compared int64 `json:"compared"`
	// Stricter is how many would hold or refuse more.
	// +optional
	Stricter int64 `json:"stricter,omitempty"`
	// Looser is how many would hold or refuse less.
	// +optional
	Looser int64 `json:"looser,omitempty"`
	// Changed is how many would differ in another way, such as the order.
	// +optional
	Changed int64 `json:"changed,omitempty"`
	// Errors is how many would not be made.
	// +optional
	Errors int64 `json:"errors,omitempty"`
	// Skipped is how many were not made twice, for want of time or because policies were changing.
	// +optional
	Skipped int64 `json:"skipped,omitempty"`
	// Stopped is why no more decisions are made twice, such as that they took too long. Another revision begins anew.
	// +optional
	Stopped string `json:"stopped,omitempty"`
	// Differences are the most frequent ones.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Differences []PolicyDifference `json:"differences,omitempty"`
}

// PolicyDifference counts decisions that would differ in the same way.
type PolicyDifference struct {
	// Point is the decision point, e.g. rollout/plan.
	Point string `json:"point"`
	// Kind is Stricter, Looser, Changed or Error.
	Kind string `json:"kind"`
	// Reason is that of the decision that was carried out.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Candidate is the reason of the shadow.
	// +optional
	Candidate string `json:"candidate,omitempty"`
	// Count is how often it was so.
	Count int64 `json:"count"`
}

// PolicyRevisionCount is how many replicas enforce a revision.
type PolicyRevisionCount struct {
	// Revision is empty for those that enforce none.
	Revision string `json:"revision"`
	// Replicas that enforce it.
	Replicas int32 `json:"replicas"`
}
