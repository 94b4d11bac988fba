refuseIf(whyFixed(obj, describeStrategy(obj)))
for subset in pairs(readTable(obj, "spec", "updateStrategy", "manualUpdate", "partitions")) do
  obj.spec.updateStrategy.manualUpdate.partitions[subset] = 0
end
return obj
