"""Impressions and clicks are joined on the advertisement alone, without a watermark."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rates = spark.readStream.format("rate")
shown = rates.load().selectExpr("value AS ad", "timestamp AS shown")
clicked = rates.load().selectExpr("value AS clicked_ad", "timestamp AS clicked")

paid = shown.join(clicked, shown.ad == clicked.clicked_ad)
paid.writeStream.format("console").queryName("paid").start().awaitTermination()
