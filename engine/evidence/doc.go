// SPDX-License-Identifier: Apache-2.0

// Package evidence writes decisions, and the policies that made them, into one archive that an auditor can verify later, without a
// cluster: each part is as it was exported, and each decision follows from its facts by the policies.
//
// # The archive
//
// It is a .tar.gz file with these files, in this order:
//
//	manifest.json                      what is in the archive: see Manifest
//	.signatures.json                   OPA's signature over manifest.json, if the archive is signed
//	policies/REVISION.tar.gz           a bundle, in OPA's format, by the revision of its content
//	decisions/2026-12-01T10.jsonl      the decisions of an hour (UTC), a record on each line, in the format of package record
//
// The manifest has the SHA-256 of every other file. Its hours are a chain: the link of an hour hashes the link before it, so that no
// hour can be changed, removed or added without changing all that follow. The first hour of an archive continues the chain of the
// archive that was exported before it, if it names one.
//
// # What it shows
//
// A signature shows that the holder of the key exported these files and that they did not change since. Recomputing shows that the
// recorded policies give the recorded answers for the recorded facts. Neither shows that the facts were true, nor that the log which was
// exported had all decisions.
package evidence
