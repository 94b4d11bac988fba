package v1alpha1

// PolicyBundleReady is True while the newest files of a bundle are enforced.
const PolicyBundleReady = "Ready"

// Reasons of Ready, one for each stage of the activation gate that can stop a bundle.
const (
	// PolicyBundleActivatedReason is of True; all others are of False.
	PolicyBundleActivatedReason = "Activated"
	// PolicyBundleUnsupportedReason is of a mode, a package or a built-in function that this release does not have.
	PolicyBundleUnsupportedReason = "Unsupported"
	// PolicyBundleCompileFailedReason is of files that do not parse, compile or fit the schemas of their inputs.
	PolicyBundleCompileFailedReason = "CompileFailed"
	// PolicyBundleOutputInvalidReason is of decisions that are not of the type that their point answers.
	PolicyBundleOutputInvalidReason = "OutputInvalid"
	// PolicyBundleTestsFailedReason is of the bundle's own tests.
	PolicyBundleTestsFailedReason = "TestsFailed"
	// PolicyBundleReplayFailedReason is of recent decisions that the bundle cannot make.
	PolicyBundleReplayFailedReason = "ReplayFailed"
	// PolicyBundleRolledBackReason is of a bundle that was active, but ran into its deadline too often.
	PolicyBundleRolledBackReason = "RolledBack"
)

// Messages of Ready.
const (
	// PolicyBundleActivatedMessage takes the revision.
	PolicyBundleActivatedMessage = "Revision %s is being enforced."
	// PolicyBundleFailedMessage takes the first error and what is enforced instead.
	PolicyBundleFailedMessage = "The newest files are not enforced: %s. %s"
	// PolicyBundleStaysMessage takes the revision that is enforced instead.
	PolicyBundleStaysMessage = "Revision %s stays active."
	// PolicyBundleNothingActiveMessage is of a bundle that has no good files.
	PolicyBundleNothingActiveMessage = "Nothing of this bundle is enforced."
)
