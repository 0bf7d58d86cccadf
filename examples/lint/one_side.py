"""The times are related, but only one of the two streams has a watermark."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rates = spark.readStream.format("rate")
shown = rates.load().selectExpr("value AS ad", "timestamp AS shown").withWatermark("shown", "10 minutes")
clicked = rates.load().selectExpr("value AS clicked_ad", "timestamp AS clicked")

soon = "ad = clicked_ad AND clicked BETWEEN shown AND shown + INTERVAL 1 HOUR"
paid = shown.join(clicked, expr(soon))
paid.writeStream.format("console").queryName("paid").start().awaitTermination()
