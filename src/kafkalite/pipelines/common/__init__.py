"""What every pipeline shares: source, sinks, checkpoints, offsets, decoding, running and stopping.

Owns the promises that pipelines make alike. Holds no pipeline.
"""
