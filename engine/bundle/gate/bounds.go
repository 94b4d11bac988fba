// SPDX-License-Identifier: Apache-2.0

package gate

// MostReport is how many bytes the report of a check may take in the process that starts the check.
const MostReport = maxReport
