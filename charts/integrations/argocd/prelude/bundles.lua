-- Health and actions of policy bundles.

-- countOutdated counts the replicas that do not run what the status says, and returns the problem of the first that has one.
local function countOutdated(obj)
  local enforced, tried = readText(obj, "status", "active", "revision"), readText(obj, "status", "candidate", "revision")
  local outdated, problem = 0, ""
  for _, replica in ipairs(readTable(obj, "status", "replicas")) do
    if readText(replica, "revision") ~= enforced or readText(replica, "candidate") ~= tried then
      outdated = outdated + 1
      if problem == "" then problem = readText(replica, "problem") end
    end
  end
  return outdated, problem
end

-- describeReplicas says how many replicas do not run a bundle yet; nil if all do.
local function describeReplicas(obj)
  local outdated, problem = countOutdated(obj)
  if outdated == 0 then return nil end
  local text = outdated .. " of " .. #readTable(obj, "status", "replicas") .. " replicas do not run it yet."
  return text .. (problem ~= "" and " One says: " .. problem or "")
end

-- isTried reports whether the mode is one that a person promotes.
local function isTried(obj)
  local mode = readField(obj, "spec", "mode")
  return mode == "Shadow" or mode == "Canary"
end

-- describeCheck says how far the check of the newest policies is; nil if none waits or runs.
local function describeCheck(obj)
  local phase, message = readField(obj, "status", "checking", "phase"), readText(obj, "status", "checking", "message")
  if phase == "Waiting" then return "The policies wait to be checked. " .. message end
  return phase == "Running" and "The policies are being checked." or nil
end

-- describeStage names the first stage of the gate that is not passed.
local function describeStage(obj)
  for _, stage in ipairs({"Fetched", "Verified", "Compiled", "ContractOK", "TestsPassed", "ReplayOK", "Active"}) do
    if readField(findCondition(obj, stage), "status") ~= "True" then return "The stage " .. stage .. " of the gate is open." end
  end
  return "The stages of the gate are passed."
end

-- judgeBundle is the health of a ClusterPolicyBundle or a PolicyBundle.
local function judgeBundle(obj)
  local health, check, ready = judgeController(obj), describeCheck(obj), findCondition(obj, "Ready")
  if health then return health end
  if check then return newHealth("Progressing", check) end
  if not isObserved(obj) or readNumber(ready, "observedGeneration") < readNumber(obj, "metadata", "generation") then
    return newHealth("Progressing", unobserved)
  end
  local refused, passed = readCondition(obj, "Ready", "False"), readCondition(obj, "Ready", "True")
  if refused then return newHealth("Degraded", readText(ready, "reason") .. ": " .. refused) end
  if not passed then return newHealth("Progressing", describeStage(obj)) end
  local outdated = describeReplicas(obj)
  if outdated then return newHealth("Progressing", passed .. " " .. outdated) end
  if isTried(obj) then return newHealth("Suspended", passed .. " The action promote goes on.") end
  return newHealth("Healthy", passed)
end

-- sumShadow sums up a count of the replicas' comparisons.
local function sumShadow(obj, count)
  local sum = 0
  for _, replica in ipairs(readTable(obj, "status", "replicas")) do sum = sum + readNumber(replica, "shadow", count) end
  return sum
end

-- whyShadowFailed says why what was seen in shadow is against a promotion.
local function whyShadowFailed(obj)
  local errors, looser = sumShadow(obj, "errors"), sumShadow(obj, "looser")
  if errors > 0 then return "In shadow, " .. errors .. " decisions failed." end
  if looser > 0 then return "In shadow, " .. looser .. " decisions were looser than those that were carried out." end
  for _, replica in ipairs(readTable(obj, "status", "replicas")) do
    local stopped = readText(replica, "shadow", "stopped")
    if stopped ~= "" then return "In shadow, " .. readText(replica, "name") .. " compares no more: " .. stopped end
  end
  return nil
end

-- whyNotPromoteBundle has the reasons of regatta policy promote.
local function whyNotPromoteBundle(obj)
  local ready = findCondition(obj, "Ready")
  return not isTried(obj) and "spec.mode is neither Shadow nor Canary."
    or not isObserved(obj) and unobserved
    or readField(ready, "status") ~= "True" and "It has not passed the gate: " .. readText(ready, "message")
    or describeReplicas(obj)
    or whyShadowFailed(obj)
end

-- promoteBundle carries out what was tried: Shadow becomes Canary if there are namespaces for that, everything else Enforce.
local function promoteBundle(obj)
  refuseIf(whyNotPromoteBundle(obj))
  local isCanaryNext = obj.spec.mode == "Shadow" and readField(obj, "spec", "canary") ~= nil
  obj.spec.mode = isCanaryNext and "Canary" or "Enforce"
  obj.spec.rollbackTo = nil
  return obj
end
