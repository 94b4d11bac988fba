// SPDX-License-Identifier: Apache-2.0

package gate

// MostReport is what the report of a check may take in the process that had the bundle checked, in bytes.
const MostReport = maxReport
