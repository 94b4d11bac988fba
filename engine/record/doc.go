// SPDX-License-Identifier: Apache-2.0

// Package record keeps the latest decisions for users who ask about them, reports which changed, and
// explains, writes and reads them.
//
// # The format of a record
//
// A record is written as a line of JSON with the names of OPA's decision log
// (https://www.openpolicyagent.org/docs/management-decision-logs), so that tools that accept OPA's
// logs accept these records:
//
//	decision_id  the process that decided and the number of the decision in it;
//	             no other decision has it, whichever replica made it and when
//	timestamp    when it was asked for, RFC 3339 in nanoseconds, UTC
//	labels       whatever the process was told to say of itself
//	path         the decision point, such as rollout/plan
//	input        the facts, as policies see them
//	result       the answer; the fallback of the point if no policy gave one
//	bundles      those that could take part, the built-in one included: {name:
//	             {revision}}; that of a tenant is named namespace/name
//	revision     of all policies together, the built-in ones included
//	error        {code, message} if no policy answered; the code is the outcome
//	metrics      timer_sdk_decision_eval_ns: how long it took, waiting included
//	masked       JSON pointers to what was hidden, from the line's root
//	erased       read like masked; never written, since a field that is gone might
//	             be one that the type needs
//
// Fields that OPA does not have:
//
//	subject      what was decided about: {kind, namespace, name, uid}
//	outcome      Decided, Undefined, Error or Timeout; never mixed
//	rules        ids of the rules that took part
//
// OPA's other fields (query, req_id, trace_id, nd_builtin_cache and so on) have
// no meaning here. Read skips unknown fields.
package record
