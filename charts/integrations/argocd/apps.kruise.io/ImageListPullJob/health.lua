-- describeFailure says which image nodes do not get; nil if all may.
local function describeFailure()
  local failed = readTable(obj, "status", "failedImageStatuses")
  if failed[1] == nil then return nil end
  return #failed .. " of " .. readNumber(obj, "status", "desired") .. " images have not been pulled by all nodes, such as "
    .. readText(failed, 1, "name") .. ": " .. readText(failed, 1, "message")
end

return judgeStarted(obj) or judgePulls(obj, "images are pulled by all nodes", readNumber(obj, "status", "succeeded"),
  readNumber(obj, "status", "desired"), describeFailure())
