-- What the actions of all kinds share. whyNot... is why an action makes no sense now, nil if it does: discovery disables the action
-- then. An action ends with such a text as its error where it would do harm, since the object may have changed meanwhile.

-- listActions returns the actions that Argo CD shows. whyNots has the whyNot... of each by its name.
local function listActions(obj, w, whyNots)
  local actions = {}
  for name, whyNot in pairs(whyNots) do actions[name] = {disabled = whyNot(obj, w) ~= nil} end
  return actions
end

-- refuseIf ends an action with an error if there is a reason to.
local function refuseIf(whyNot)
  if whyNot then error(whyNot, 0) end
end

-- setField sets a field of an object, and makes the maps on the way to it.
local function setField(object, path, value)
  for i = 1, #path - 1 do
    if object[path[i]] == nil then object[path[i]] = {} end
    object = object[path[i]]
    refuseIf(type(object) ~= "table" and table.concat(path, ".", 1, i) .. " is no map." or nil)
  end
  object[path[#path]] = value
end

-- whyControlled is for subsets of a UnitedDeployment, which writes their spec.
local function whyControlled(obj)
  for _, owner in ipairs(readTable(obj, "metadata", "ownerReferences")) do
    local version = readField(owner, "apiVersion")
    if readField(owner, "controller") == true and readField(owner, "kind") == "UnitedDeployment"
      and (version == "apps.kruise.io/v1beta1" or version == "apps.kruise.io/v1alpha1") then
      return "UnitedDeployment " .. readText(owner, "name") .. " would undo the change: change the UnitedDeployment instead."
    end
  end
  return nil
end

-- whyNotPause is about a workload.
local function whyNotPause(obj, w)
  return whyControlled(obj)
    or w.paused and w.at .. ".paused is true already."
    or w.manual
    or nil
end

-- whyNotResume is about a workload.
local function whyNotResume(obj, w)
  return whyControlled(obj)
    or not w.paused and w.at .. ".paused is not true."
    or nil
end

-- setBehind sets a field of the map at a path.
local function setBehind(obj, path, field, value)
  local full = {unpack(path)}
  full[#full + 1] = field
  setField(obj, full, value)
  return obj
end

-- setPaused pauses a workload or a job, or lets it go on. It writes false rather than removing the field: Argo CD takes an empty
-- map that an action returns for one that the action did not change.
local function setPaused(obj, path, paused, whyNot)
  refuseIf(whyNot)
  return setBehind(obj, path, "paused", paused)
end

-- whyNotRestart is about a workload whose pods a change of the template recreates.
local function whyNotRestart(obj, w)
  return whyControlled(obj)
    or w.paused and w.at .. ".paused is true: resume it first."
    or w.manual
    or not w.template and "spec.template has no template of pods."
    or w.policy == "InPlaceOnly" and "The update policy is InPlaceOnly, so no pod may be recreated."
    or nil
end

-- restartPods changes the template of pods as kubectl rollout restart does. The library os has nothing but time and date.
local function restartPods(obj, w)
  refuseIf(whyNotRestart(obj, w))
  local annotations = {unpack(w.template)}
  annotations[#annotations + 1] = "metadata"
  annotations[#annotations + 1] = "annotations"
  return setBehind(obj, annotations, "kubectl.kubernetes.io/restartedAt", require("os").date("!%Y-%m-%dT%XZ"))
end

-- whyFixed is why the partition of a workload must not be set, nil if it may.
local function whyFixed(obj, w)
  return whyControlled(obj) or w.manual or nil
end

-- whyNotPromote is about a workload whose partition keeps pods at their revision.
local function whyNotPromote(obj, w)
  return whyFixed(obj, w)
    or not isObserved(obj) and unobserved
    or w.target >= w.wanted and "No partition keeps a pod at its revision."
    or w.updated >= w.wanted and "All pods have the newest revision."
    or nil
end

-- promoteRollout lets all pods be updated.
local function promoteRollout(obj, w)
  refuseIf(whyFixed(obj, w))
  return setBehind(obj, w.path, "partition", 0)
end

-- approvedRevision is the annotation that policies such as canary-approval read.
local approvedRevision = "regatta.sh/approved-revision"

-- whyNotName is why a revision must not be approved as the newest one, nil if it may.
local function whyNotName(obj, revision)
  return not isObserved(obj) and unobserved
    or revision == "" and "The status names no revision."
    or readField(obj, "metadata", "annotations", approvedRevision) == revision and "The newest revision is approved already."
    or nil
end

-- whyNotApprove is about a workload that has the function nameRevision.
local function whyNotApprove(obj, w)
  return whyNotName(obj, nameRevision(obj)) or w.updated >= w.wanted and "All pods have the newest revision." or nil
end

-- approveRevision approves the newest revision, as regatta rollout approve does.
local function approveRevision(obj, revision)
  refuseIf(whyNotName(obj, revision))
  return setBehind(obj, {"metadata", "annotations"}, approvedRevision, revision)
end
