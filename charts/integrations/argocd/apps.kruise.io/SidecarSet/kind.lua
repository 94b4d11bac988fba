-- describeStrategy describes how a SidecarSet is updated. It has no template.
local function describeStrategy(obj)
  local w = newStrategy(obj, {"spec", "updateStrategy"})
  w.isKept = readField(w.rolling, "type") == "NotUpdate"
  if w.isKept then
    w.manual = "spec.updateStrategy.type is NotUpdate: running pods keep the containers that they have."
  end
  return w
end

-- resolvePartition returns how many of the matched pods the partition keeps. A percentage below 100% keeps all but one at most.
-- As long as the controller cannot read a partition, it updates no pod.
local function resolvePartition(partition, matched)
  if partition == nil then return 0 end
  local kept = resolveShare(partition, matched)
  if not kept then return matched end
  if type(partition) == "string" then
    if kept < readPercentage(partition) * matched / 100 then kept = kept + 1 end
    if matched > 1 and kept == matched and partition ~= "100%" then kept = matched - 1 end
  end
  return lesser(greater(kept, 0), matched)
end

-- countPods adds the counts of a SidecarSet: its pods are those that have its containers. The status counts ready pods in place
-- of available ones.
local function countPods(obj, w)
  local status = readTable(obj, "status")
  w.pods, w.available = readNumber(status, "matchedPods"), readNumber(status, "readyPods")
  w.wanted = w.pods
  w.target = w.pods - resolvePartition(readField(w.rolling, "partition"), w.pods)
  w.updated, w.done = readNumber(status, "updatedPods"), readNumber(status, "updatedReadyPods")
  return w
end

-- nameRevision returns the name of the newest revision.
local function nameRevision(obj)
  return readText(obj, "status", "latestRevision")
end

-- addSigns adds the conditions that mean a failure.
local function addSigns(obj, w)
  if type(readField(w.rolling, "selector")) == "table" then
    w.limit = w.at .. ".selector limits the update to some pods, and the status does not count these."
  end
  w.notes = readCondition(obj, "InjectionRevisionGone", "True")
  w.failures = {
    {type = "FailedUpdate", status = "True"}, {type = "InjectionMissed", status = "True"}, {type = "Conflict", status = "True"},
  }
  return w
end
