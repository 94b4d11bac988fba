// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Conditions of a bundle: one for each stage of the activation gate, in their
// order, and Ready, which is True when all are.
const (
	PolicyBundleFetched     = "Fetched"
	PolicyBundleVerified    = "Verified"
	PolicyBundleCompiled    = "Compiled"
	PolicyBundleContractOK  = "ContractOK"
	PolicyBundleTestsPassed = "TestsPassed"
	PolicyBundleReplayOK    = "ReplayOK"
	PolicyBundleActive      = "Active"
	PolicyBundleReady       = "Ready"
)

// PolicyBundleStages are the conditions of the stages, in their order.
func PolicyBundleStages() []string {
	return []string{
		PolicyBundleFetched, PolicyBundleVerified, PolicyBundleCompiled, PolicyBundleContractOK,
		PolicyBundleTestsPassed, PolicyBundleReplayOK, PolicyBundleActive,
	}
}

// Reasons of the conditions. Where a stage is passed its reason is Passed, or
// one of these.
const (
	// PolicyBundlePassedReason is of a stage that is passed.
	PolicyBundlePassedReason = "Passed"
	// PolicyBundleNotReachedReason is of stages behind the one that stopped the bundle.
	PolicyBundleNotReachedReason = "NotReached"
	// PolicyBundleNotRequiredReason is of Verified without spec.verification.
	PolicyBundleNotRequiredReason = "NotRequired"

	// PolicyBundleActivatedReason is of bundles that are enforced.
	PolicyBundleActivatedReason = "Activated"
	// PolicyBundleShadowReason is of bundles in shadow.
	PolicyBundleShadowReason = "InShadow"
	// PolicyBundleCanaryReason is of bundles that are enforced in some namespaces.
	PolicyBundleCanaryReason = "InCanary"
	// PolicyBundleRollbackReason is of bundles that spec.rollbackTo took back.
	PolicyBundleRollbackReason = "RolledBackOnRequest"
	// PolicyBundleNotEnforcedReason is of Ready where the bundle has passed and no replica can enforce it: it does not compile with other
	// bundles any more, or those of all namespaces take too much memory.
	PolicyBundleNotEnforcedReason = "NotEnforced"

	// PolicyBundleFetchFailedReason is of a source that could not be read, and may be the next time.
	PolicyBundleFetchFailedReason = "FetchFailed"
	// PolicyBundleSourceInvalidReason is of a source that cannot be read until a user changes the source, its contents, a secret or a role.
	PolicyBundleSourceInvalidReason = "SourceInvalid"
	// PolicyBundleSignatureInvalidReason is of bundles without a valid signature by a key of spec.verification.
	PolicyBundleSignatureInvalidReason = "SignatureInvalid"
	// PolicyBundleOlderReason is of bundles with a lower sequence than the active one.
	PolicyBundleOlderReason = "OlderSequence"
	// PolicyBundleUnsupportedReason is of a package, a rule or a built-in function that a bundle of its kind may not have.
	PolicyBundleUnsupportedReason = "Unsupported"
	// PolicyBundleCompileFailedReason is of files that do not parse, compile or fit the schemas of their inputs.
	PolicyBundleCompileFailedReason = "CompileFailed"
	// PolicyBundleConflictReason is of packages that another bundle has already.
	PolicyBundleConflictReason = "Conflict"
	// PolicyBundleOutputInvalidReason is of decisions that are not of the type that their point answers.
	PolicyBundleOutputInvalidReason = "OutputInvalid"
	// PolicyBundleTestsFailedReason is of the bundle's own tests.
	PolicyBundleTestsFailedReason = "TestsFailed"
	// PolicyBundleReplayFailedReason is of recent decisions that the bundle cannot make.
	PolicyBundleReplayFailedReason = "ReplayFailed"
	// PolicyBundleLimitsExceededReason is of a bundle that takes more memory or time to be checked than there is.
	PolicyBundleLimitsExceededReason = "LimitsExceeded"
	// PolicyBundleCheckNeverEndedReason is of a bundle whose check began several times and never ended, since the manager ended first.
	PolicyBundleCheckNeverEndedReason = "CheckNeverEnded"
	// PolicyBundleRolledBackReason is of a bundle that was active, but ran into its deadline too often.
	PolicyBundleRolledBackReason = "RolledBack"
	// PolicyBundleNotLoadedReason is of a revision that a replica cannot read or compile, and has no copy of.
	PolicyBundleNotLoadedReason = "NotLoaded"
	// PolicyBundleSignatureRevokedReason is of a revision that was let in and is signed by no key of spec.verification any more.
	PolicyBundleSignatureRevokedReason = "SignatureRevoked"
	// PolicyBundleEndsProcessReason is of a revision with which a replica ended again and again while it was loaded.
	PolicyBundleEndsProcessReason = "EndsProcess"
	// PolicyBundleRevisionUnknownReason is of a spec.rollbackTo that names nothing that is kept.
	PolicyBundleRevisionUnknownReason = "RevisionUnknown"
)

// Messages of the conditions.
const (
	// PolicyBundleActivatedMessage takes the revision.
	PolicyBundleActivatedMessage = "Revision %s is being enforced."
	// PolicyBundleShadowMessage takes the revision, and what is enforced.
	PolicyBundleShadowMessage = "Revision %s is in shadow: its decisions are counted and not carried out. %s"
	// PolicyBundleCanaryMessage takes the revision, the namespaces, and what is enforced elsewhere, in lower case.
	PolicyBundleCanaryMessage = "Revision %s is being enforced in %s only. Elsewhere, %s"
	// PolicyBundleCanaryKindsMessage takes the kinds that a canary would protect. It follows on the other one.
	PolicyBundleCanaryKindsMessage = "Kinds to protect are the same in all namespaces, so those of its settings (%s) have effect only when it is promoted."
	// PolicyBundleRollbackMessage takes the revision.
	PolicyBundleRollbackMessage = "Revision %s is being enforced because spec.rollbackTo names it."
	// PolicyBundleFailedMessage takes the first error and what is enforced instead.
	PolicyBundleFailedMessage = "The newest files are not enforced: %s. %s"
	// PolicyBundleStaysMessage takes the revision that is enforced instead.
	PolicyBundleStaysMessage = "Revision %s stays active."
	// PolicyBundleWithoutMessage takes how many replicas do not enforce it, of how many, and what one of them says. It follows on
	// the other one.
	PolicyBundleWithoutMessage = " But %d of %d replicas do not enforce it, such as %s: %s."
	// PolicyBundleStrictMessage takes the revision, how many replicas cannot run it, of how many, and what one of them says.
	PolicyBundleStrictMessage = "Revision %s is not enforced by %d of %d replicas, which hold and refuse where it takes part in decisions, such as %s: %s."
	// PolicyBundleWithheldMessage takes the revision that is withheld.
	PolicyBundleWithheldMessage = "Nothing of this bundle is enforced, and what revision %s takes part in is refused or held until you change its files or its mode, or delete the bundle."
	// PolicyBundleNothingActiveMessage is of a bundle that has no good files.
	PolicyBundleNothingActiveMessage = "Nothing of this bundle is enforced."
)
