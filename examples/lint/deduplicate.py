"""A watermark is set, but dropDuplicates does not have the event time among its keys."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
clicks = spark.readStream.format("rate").load().selectExpr("value AS click", "timestamp AS clicked")

once = clicks.withWatermark("clicked", "10 minutes").dropDuplicates(["click"])
once.writeStream.format("console").queryName("once").start().awaitTermination()
