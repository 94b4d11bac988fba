-- describeStrategy describes how an Advanced DaemonSet is updated. Its update policy never forbids to recreate a pod.
local function describeStrategy(obj)
  return newStrategy(obj, {"spec", "updateStrategy", "rollingUpdate"}, "rollingUpdateType", {"spec"})
end

-- limitsCreation reports whether the partition limits how many nodes get a pod at all.
local function limitsCreation(obj)
  return readField(obj, "spec", "scaleStrategy", "partitionedScaling") == true
    or readField(obj, "metadata", "annotations", "daemonset.kruise.io/progressive-create-pod") == "true"
end

-- nameRevision returns the name of the newest revision. The status has only its hash.
local function nameRevision(obj)
  local hash = readText(obj, "status", "updateRevision")
  if hash == "" then hash = readText(obj, "status", "daemonSetHash") end
  if hash == "" then return "" end
  return readText(obj, "metadata", "name") .. "-" .. hash
end

-- countPods adds the counts of an Advanced DaemonSet.
local function countPods(obj, w)
  local status = readTable(obj, "status")
  w.wanted = readNumber(status, "desiredNumberScheduled")
  w.target = greater(w.wanted - (resolveShare(readField(w.rolling, "partition"), w.wanted) or 0), 0)
  w.pods, w.available = readNumber(status, "currentNumberScheduled"), readNumber(status, "numberAvailable")
  w.updated = readNumber(status, "updatedNumberScheduled")
  w.done = lesser(w.updated, w.available)
  if w.target < w.wanted and not w.manual and limitsCreation(obj) then
    w.expected = greater(lesser(w.pods, w.wanted), w.target)
  end
  return w
end

-- addSigns adds the conditions that mean a failure.
local function addSigns(_, w)
  if type(readField(w.rolling, "selector")) == "table" then
    w.limit = w.at .. ".selector limits the update to some nodes, and the status does not count these."
  end
  w.failures = {{type = "FailedUpdate", status = "True"}, {type = "FailedScale", status = "True"}}
  return w
end
